package stream

import (
	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/engine/cachepolicy"
)

// yield makes the cache give up at least so many bytes, its coldest experts
// first, until reclaim. It stops at what one batch needs.
func (s *Stream) yield(bytes int64) {
	budget := s.stats.CacheBudgetBytes
	for i, a := range s.arenas {
		share := float64(a.limit) * float64(a.g.slotBytes) / float64(budget)
		drop := int((int64(share*float64(bytes)) + a.g.slotBytes - 1) / a.g.slotBytes)
		keep := max(a.limit-drop, min(s.cfg.Used, a.limit))
		s.stats.CacheYielded += int64(a.open-keep) * a.g.slotBytes
		s.shrink(i, keep)
	}
}

// reclaim gives the cache its budget back.
func (s *Stream) reclaim() {
	for _, a := range s.arenas {
		a.grow(a.limit)
	}
	if s.room != nil {
		s.Populate(s.room)
	}
}

// Resize changes the cache's budget between graphs. A smaller one keeps the
// hottest experts, one up to the size the arenas were made for keeps all; a
// larger one needs new arenas and starts cold.
func (s *Stream) Resize(bytes int64) error {
	var whole int64
	for _, a := range s.arenas {
		whole += int64(a.g.most) * a.g.slotBytes
	}
	if bytes > whole {
		return s.relay(bytes)
	}
	scale := float64(bytes) / float64(s.stats.CacheBudgetBytes)
	for i, a := range s.arenas {
		a.limit = min(max(int(scale*float64(a.limit)), min(s.cfg.Used, a.g.most)), a.g.most)
		s.shrink(i, a.limit)
	}
	s.reclaim()
	s.settleBudget()
	if s.narrow {
		s.bindNarrow()
	}
	return nil
}

// relay lays the cache out anew for a budget.
func (s *Stream) relay(bytes int64) error {
	cfg := s.cfg
	cfg.BudgetBytes = bytes
	plan, err := layout(&cfg, s.src.Align())
	if err != nil {
		return err
	}
	policy, err := cachepolicy.New(cfg.Policy, cfg.Layers, cfg.Experts, plan.groupOf)
	if err != nil {
		return err
	}
	s.populator.stop()
	s.dropGuesses()
	s.guesses = newGuesser(len(plan.groups))
	for _, a := range s.arenas {
		if err := a.free(); err != nil {
			return err
		}
	}
	s.cfg, s.plan, s.policy, s.arenas = cfg, plan, policy, nil
	s.split = newSplitter(plan, &s.cfg)
	for i := range s.slotOf {
		s.slotOf[i] = -1
	}
	for i := range plan.groups {
		a, err := newArena(&plan.groups[i])
		if err != nil {
			return err
		}
		s.arenas = append(s.arenas, a)
	}
	if cfg.Pin {
		s.pin(cfg.PinFit)
	}
	s.settleBudget()
	s.bindNarrow()
	s.narrow = true
	return nil
}

// settleBudget recounts what the limits add up to.
func (s *Stream) settleBudget() {
	var budget int64
	s.plan.minSlots = s.arenas[0].limit
	for _, a := range s.arenas {
		budget += int64(a.limit) * a.g.slotBytes
		s.plan.minSlots = min(s.plan.minSlots, a.limit)
	}
	s.stats.CacheBudgetBytes = budget
}

// shrink leaves a group n open slots: the coldest residents go, those that lie
// in the slots to close move to free ones, and the closed slots' memory is
// given back. No graph may be running.
func (s *Stream) shrink(group, n int) {
	a := s.arenas[group]
	if n >= a.open {
		return
	}
	s.populator.stop()
	s.dropGuesses()
	s.policy.Release()
	for a.used() > n {
		vl, ve, ok := s.policy.Victim(a.g.layers[0])
		if !ok {
			return
		}
		a.release(s.evict(vl, ve))
	}
	s.compact(a, n)
	a.close(n)
}

// compact moves residents out of the slots from n on.
func (s *Stream) compact(a *arena, n int) {
	var low []int32
	for _, i := range a.freeSlots {
		if int(i) < n {
			low = append(low, i)
		}
	}
	for _, l := range a.g.layers {
		row := s.slotOf[l*s.cfg.Experts : (l+1)*s.cfg.Experts]
		for e, from := range row {
			if int(from) < n {
				continue
			}
			to := low[len(low)-1]
			low = low[:len(low)-1]
			for _, p := range a.g.proj {
				copy(a.slot(p, to), a.slot(p, from))
			}
			row[e] = to
		}
	}
	a.freeSlots = append(a.freeSlots[:0], low...)
}

// close gives the memory of the slots from n on back; n slots stay open.
func (a *arena) close(n int) {
	for _, p := range a.g.proj {
		from := roundUp(a.off[p]+int64(n)*a.g.stride[p], 4096)
		to := a.off[p] + int64(a.open)*a.g.stride[p]
		if to > from {
			if a.pinned > n {
				_ = unix.Munlock(a.mem[from:to]) // locked pages cannot be given back
			}
			_ = unix.Madvise(a.mem[from:to], unix.MADV_DONTNEED)
		}
	}
	a.open = n
	a.pinned = min(a.pinned, n)
}

// grow opens the slots up to n again.
func (a *arena) grow(n int) {
	for i := n - 1; i >= a.open; i-- {
		a.freeSlots = append(a.freeSlots, int32(i))
	}
	if wasPinned := a.pinned == a.open && a.open > 0; wasPinned && a.lock(a.open, n) {
		a.pinned = n
	}
	a.open = max(a.open, n)
}

// used is the number of residents.
func (a *arena) used() int { return a.open - len(a.freeSlots) }
