package stream

import (
	"errors"
	"time"
)

var errNoVictim = errors.New("the expert cache has no slot for this layer's experts: raise --cache-mb")

// Route answers a layer's routing: it looks up each distinct expert once,
// makes room for the missing, asks for their reads and writes where the expert
// matmuls find each. It reports false when the run must end; Err says why.
func (s *Stream) Route(layer int, ids []int32, used, tokens int, slots []int32) bool {
	began := time.Now()
	waited, _ := s.Spent()
	distinct := s.note(layer, ids, used, tokens)
	var err error
	if s.narrow {
		err = s.routeNarrow(layer, distinct, ids, slots)
	} else {
		copy(slots, ids)
		err = s.wide.route(layer, distinct, tokens)
	}
	waitedNow, _ := s.Spent()
	s.stats.ManageS += time.Since(began).Seconds() - (waitedNow - waited)
	if err == nil && (!s.cfg.Overlap || s.device) {
		err = s.waitAll(layer)
	}
	if err != nil {
		s.Fail(err)
	}
	return err == nil
}

// Resident notes a routing that was answered from Slots alone.
func (s *Stream) Resident(layer int, ids []int32, used, tokens int) {
	began := time.Now()
	s.countLookups(layer, len(s.note(layer, ids, used, tokens)), nil)
	s.stats.HookResident++
	s.stats.ManageS += time.Since(began).Seconds()
}

// Slots are where each layer's experts lie: an entry per expert, -1 for one
// that is not in the cache.
func (s *Stream) Slots() []int32 { return s.slotOf }

// note tells everybody who keeps count of a routing, and returns its experts.
func (s *Stream) note(layer int, ids []int32, used, tokens int) (distinct []int32) {
	s.routed = layer
	if s.trace != nil && !s.rehearsing {
		s.trace(layer, ids, used, tokens, s.residentNow)
	}
	s.stats.HookCalls++
	s.stats.ExpertsRouted += int64(len(ids))
	distinct, counts := s.picks.Distinct(ids)
	s.picked = len(distinct)
	s.policy.Touch(layer, distinct, counts, tokens, s.prompt)
	s.split.touch(layer, s.cfg.Experts, distinct)
	return distinct
}

func (s *Stream) routeNarrow(layer int, distinct, ids, slots []int32) error {
	s.meet(layer, distinct)
	row := s.slotOf[layer*s.cfg.Experts : (layer+1)*s.cfg.Experts]
	s.misses = s.misses[:0]
	for _, e := range distinct {
		if row[e] < 0 {
			s.misses = append(s.misses, e)
		}
	}
	s.countLookups(layer, len(distinct), s.misses)
	for _, e := range s.misses {
		if !s.admit(layer, e) {
			return errNoVictim
		}
	}
	if len(s.misses) > 0 {
		s.ask(layer, s.misses)
	}
	for i, e := range ids {
		slots[i] = row[e]
	}
	return nil
}

// admit gives an expert a slot of its layer's group, at another's cost if need
// be, and reports whether it got one.
func (s *Stream) admit(layer int, e int32) bool {
	slot, ok := s.vacate(layer)
	if !ok {
		return false
	}
	if g := s.guesses.made; g != nil && g.expert == e {
		slot, g.slot = g.slot, slot // it is there already, or on its way
	}
	s.place(layer, e, slot)
	return true
}

// vacate finds a slot of a layer's group that holds nothing, or nothing any more.
func (s *Stream) vacate(layer int) (slot int32, ok bool) {
	if slot, ok = s.arenas[s.plan.groupOf[layer]].take(); ok {
		return slot, true
	}
	vl, ve, found := s.policy.Victim(layer)
	if !found {
		return -1, false
	}
	return s.evict(vl, ve), true
}

// place makes an expert a slot's resident.
func (s *Stream) place(layer int, e, slot int32) {
	s.policy.Insert(layer, e)
	s.slotOf[layer*s.cfg.Experts+int(e)] = slot
}

func (s *Stream) evict(layer int, e int32) int32 {
	i := layer*s.cfg.Experts + int(e)
	slot := s.slotOf[i]
	s.slotOf[i] = -1
	s.policy.Remove(layer, e)
	s.stats.Evictions++
	return slot
}

// ask enqueues the reads of a layer's missing experts, projection by
// projection in the order they are multiplied.
func (s *Stream) ask(layer int, experts []int32) {
	began := time.Now()
	a := s.arenas[s.plan.groupOf[layer]]
	for _, p := range execOrder {
		t := s.plan.tensors[layer][p]
		if t == nil {
			continue
		}
		b, phase := s.lanes.expect(p, len(experts)), s.plan.phase(t)
		for _, e := range experts {
			if made := s.guesses.made; made != nil && made.expert == e && made.claim(p, b) {
				continue
			}
			s.guesses.n++
			slot := s.slotOf[layer*s.cfg.Experts+int(e)]
			s.lanes.queue.put(request{tensor: t, expert: e, dst: a.slot(p, slot), phase: phase, batch: b})
		}
	}
	asked := time.Now()
	s.guesses.asked, s.guesses.made = asked, nil
	s.stats.SubmitS += asked.Sub(began).Seconds()
	s.lanes.queue.post()
	// A lane that wakes may take this thread's processor to begin its read, and
	// who asked would wait for that read next: it is waiting already.
	if s.cfg.Overlap {
		s.stats.WaitGateS += time.Since(asked).Seconds()
	} else {
		s.stats.WaitRouteS += time.Since(asked).Seconds()
	}
}

// countLookups counts a batch's lookups and how many bytes its misses read.
func (s *Stream) countLookups(layer, lookups int, misses []int32) {
	n, m := int64(lookups), int64(len(misses))
	s.stats.Lookups += n
	s.stats.Hits += n - m
	s.stats.Misses += m
	var slice int64
	for _, t := range s.plan.tensors[layer] {
		if t != nil {
			slice += t.Slice
		}
	}
	for _, e := range misses {
		if i := layer*s.cfg.Experts + int(e); s.seen[i] {
			s.stats.BytesReread += slice
		} else {
			s.seen[i] = true
			s.stats.BytesCold += slice
		}
	}
	if !s.prompt {
		s.stats.DecodeLookups += n
		s.stats.DecodeHits += n - m
		s.stats.DecodeBytesRead += m * slice
	}
}

// Wait is called before a projection's matmul when pipelining.
func (s *Stream) Wait(layer, proj int) bool {
	if !s.lanes.pending(proj) {
		return true
	}
	began := time.Now()
	err := s.lanes.wait(proj)
	s.stats.OverlapWaits++
	*s.waitOf(proj) += time.Since(began).Seconds()
	if err != nil {
		s.Fail(err)
	}
	return err == nil
}

// Asked reports whether reads of the layer that was routed last are not waited
// for yet.
func (s *Stream) Asked() bool { return s.lanes.any(func(b *batch) bool { return b.open }) }

// Reading reports whether any of them is still under way.
func (s *Stream) Reading() bool {
	return s.lanes.any(func(b *batch) bool { return b.open && b.left.Load() > 0 })
}

func (s *Stream) waitAll(layer int) error {
	began := time.Now()
	for _, p := range execOrder {
		if s.plan.tensors[layer][p] == nil {
			continue
		}
		if err := s.lanes.wait(p); err != nil {
			return err
		}
	}
	s.stats.WaitRouteS += time.Since(began).Seconds()
	return nil
}

func (s *Stream) waitOf(proj int) *float64 {
	switch proj {
	case Up:
		return &s.stats.WaitUpS
	case Down:
		return &s.stats.WaitDownS
	}
	return &s.stats.WaitGateS
}
