package stream

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// readAhead is the share of a layer's experts a prompt must be expected to pick
// before a whole layer is read ahead of its routing.
const readAhead = 0.9

// prefill serves graphs too wide for the cache. A slot holds one layer's
// experts at full width and ids are not remapped. With one slot the experts
// that were picked are filled in at the routing node while compute waits; with
// two, the whole next layer is read while this one computes, where the prompt
// is wide enough to want nearly all of it.
type prefill struct {
	s      *Stream
	slots  [][]byte
	off    [numProj]int64
	size   int64 // of one slot
	tight  bool  // slices lie end to end, as in the file
	cur    int   // slot of the layer that computes
	loaded int   // layer that is in the other slot, read ahead; -1
	hits   []int32
}

func newPrefill(s *Stream) *prefill {
	w := &prefill{s: s, loaded: -1, hits: make([]int32, 0, s.cfg.Experts), tight: s.cfg.Device}
	for p, stride := range s.plan.wide {
		w.off[p] = w.size
		w.size += roundUp(stride*int64(s.cfg.Experts), 4096)
	}
	return w
}

// build reserves the slots; pages are committed as experts land in them. On
// demand, the cache first gives up as much as they take.
func (w *prefill) build() error {
	if len(w.slots) > 0 {
		return nil
	}
	n := max(w.s.cfg.PrefillSlots, 1)
	if w.s.cfg.PrefillOnDemand {
		w.s.yield(int64(n) * w.size)
	}
	for range n {
		mem, err := reserve(w.size)
		if err != nil {
			_ = w.drop()
			return fmt.Errorf("reserving %d MiB for a prompt's experts (--prefill-slots): %w", w.size>>20, err)
		}
		w.slots = append(w.slots, mem)
	}
	w.s.stats.SlotBuilds++
	return nil
}

// finish ends a run of wide graphs: what was read ahead for a layer that did
// not come is waited for and forgotten, and on demand the memory goes back.
func (w *prefill) finish() error {
	if w.loaded >= 0 {
		w.s.lanes.turn()
		err := w.s.waitAll(w.loaded)
		w.loaded = -1
		if err != nil {
			return err
		}
	}
	if !w.s.cfg.PrefillOnDemand || len(w.slots) == 0 {
		return nil
	}
	err := w.drop()
	w.s.reclaim()
	return err
}

func (w *prefill) drop() error {
	for _, mem := range w.slots {
		if err := unix.Munmap(mem); err != nil {
			return err
		}
	}
	w.slots = nil
	return nil
}

// stride is how far a tensor's slices lie apart in a slot. Devices may expect
// them end to end.
func (w *prefill) stride(t *Tensor) int64 {
	if w.tight {
		return t.Slice
	}
	return w.s.plan.wide[t.Proj]
}

// phase is how far into its place in a slot a tensor's slice begins.
func (w *prefill) phase(t *Tensor) int64 {
	if w.tight {
		return 0
	}
	return w.s.plan.phase(t)
}

func (w *prefill) slot(i int, t *Tensor, e int32) []byte {
	stride := w.stride(t)
	from := w.off[t.Proj] + int64(e)*stride
	return w.slots[i][from : from+stride : from+stride]
}

// route fills a slot for one layer and binds the layer to it.
func (w *prefill) route(layer int, distinct []int32, tokens int) error {
	s := w.s
	s.stats.PrefillLayers++
	ahead := w.loaded == layer
	if w.loaded >= 0 {
		w.cur = 1 - w.cur
		s.lanes.turn()
		if err := s.waitAll(w.loaded); err != nil {
			return err
		}
		w.loaded = -1
	}
	row := s.slotOf[layer*s.cfg.Experts : (layer+1)*s.cfg.Experts]
	w.sort(row, distinct)
	s.countLookups(layer, len(distinct), s.misses)
	w.bind(layer)
	var err error
	if ahead {
		s.stats.PrefillAhead++
		w.keepAll(layer)
		w.store(layer, row)
	} else {
		err = w.fill(layer, row)
	}
	if err == nil && len(w.slots) > 1 && w.worthIt(tokens) {
		w.readNext(layer)
	}
	return err
}

// sort parts the picked experts into the cache's and the rest.
func (w *prefill) sort(row, distinct []int32) {
	w.s.misses, w.hits = w.s.misses[:0], w.hits[:0]
	for _, e := range distinct {
		if row[e] < 0 {
			w.s.misses = append(w.s.misses, e)
		} else {
			w.hits = append(w.hits, e)
		}
	}
}

// fill copies what the cache holds, which must end before its slots may change
// hands, and reads the rest.
func (w *prefill) fill(layer int, row []int32) error {
	if len(w.hits) > 0 {
		w.copyIn(layer, row, w.hits, w.cur, w.s.lanes.expect)
		if err := w.s.waitAll(layer); err != nil {
			return err
		}
	}
	w.keepAll(layer)
	a := w.s.arenas[w.s.plan.groupOf[layer]]
	w.each(layer, len(w.s.misses), w.s.lanes.expect, func(t *Tensor, r request) {
		for _, e := range w.s.misses {
			r.expert, r.dst, r.also = e, w.slot(w.cur, t, e), nil
			if row[e] >= 0 { // admitted, and has not yielded since
				r.also = a.slot(t.Proj, row[e])
			}
			w.s.lanes.queue.put(r)
		}
	})
	return nil
}

// keepAll offers every missing expert to the cache: a prompt larger than the
// cache keeps its best.
func (w *prefill) keepAll(layer int) {
	s := w.s
	for _, e := range s.misses {
		if s.admit(layer, e) {
			continue
		}
		if worse, ok := s.policy.Yield(layer, e); ok {
			s.place(layer, e, s.evict(layer, worse))
		}
	}
}

// store copies the experts the cache admitted out of the slot they were read
// ahead into.
func (w *prefill) store(layer int, row []int32) {
	a := w.s.arenas[w.s.plan.groupOf[layer]]
	n := 0
	for _, e := range w.s.misses {
		if row[e] >= 0 {
			w.s.misses[n] = e
			n++
		}
	}
	w.each(layer, n, w.s.lanes.expect, func(t *Tensor, r request) {
		for _, e := range w.s.misses[:n] {
			r.expert, r.dst, r.from = e, a.slot(t.Proj, row[e]), w.slot(w.cur, t, e)
			r.phase, r.other = w.s.plan.phase(t), w.phase(t)
			w.s.lanes.queue.put(r)
		}
	})
}

// worthIt reports whether a graph of that many tokens is expected to pick
// nearly every expert of a layer, if it picked them evenly.
func (w *prefill) worthIt(tokens int) bool {
	e := float64(w.s.cfg.Experts)
	return 1-math.Pow(1-1/e, float64(tokens*w.s.cfg.Used)) >= readAhead
}

// readNext starts to fill the other slot with the whole next layer.
func (w *prefill) readNext(layer int) {
	s := w.s
	next := layer + 1
	for ; next < s.cfg.Layers && s.plan.tensors[next] == ([numProj]*Tensor{}); next++ {
	}
	if next >= s.cfg.Layers {
		return
	}
	w.loaded = next
	row := s.slotOf[next*s.cfg.Experts : (next+1)*s.cfg.Experts]
	a := s.arenas[s.plan.groupOf[next]]
	w.each(next, s.cfg.Experts, s.lanes.ahead, func(t *Tensor, r request) {
		for e := range int32(s.cfg.Experts) {
			r.expert, r.dst, r.from = e, w.slot(1-w.cur, t, e), nil
			if row[e] >= 0 {
				r.from = a.slot(t.Proj, row[e])
			}
			s.lanes.queue.put(r)
		}
	})
}

// copyIn asks for copies of resident experts.
func (w *prefill) copyIn(layer int, row, experts []int32, slot int, open func(proj, n int) *batch) {
	a := w.s.arenas[w.s.plan.groupOf[layer]]
	w.each(layer, len(experts), open, func(t *Tensor, r request) {
		for _, e := range experts {
			r.expert, r.dst, r.from = e, w.slot(slot, t, e), a.slot(t.Proj, row[e])
			w.s.lanes.queue.put(r)
		}
	})
}

// bind points the layer's expert tensors at the current slot.
func (w *prefill) bind(layer int) {
	for p, t := range w.s.plan.tensors[layer] {
		if t != nil {
			base := address(w.slots[w.cur]) + uintptr(w.off[p]+w.phase(t))
			w.s.binder.Bind(layer, p, base, w.s.cfg.Experts, w.stride(t))
		}
	}
}

// bindAll points every layer at the slots: a graph for a device takes the
// layout of its copies when it is built, not when the layer is reached.
func (w *prefill) bindAll() {
	for layer := range w.s.plan.tensors {
		w.bind(layer)
	}
}

// each calls f for the layer's projections in reading order, with a request
// that lacks only the expert and the memory.
func (w *prefill) each(layer, n int, open func(proj, n int) *batch, f func(t *Tensor, r request)) {
	for _, p := range execOrder {
		if t := w.s.plan.tensors[layer][p]; t != nil {
			f(t, request{tensor: t, phase: w.phase(t), other: w.s.plan.phase(t), batch: open(p, n)})
			w.s.lanes.queue.post()
		}
	}
}
