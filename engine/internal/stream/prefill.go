package stream

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// prefill serves graphs too wide for the cache: a slot holds one layer's
// experts at full width, ids are not remapped, and only the experts that were
// picked are filled, from the cache where it has them.
type prefill struct {
	s    *Stream
	mem  []byte
	off  [numProj]int64
	hits []int32
}

// build reserves the slot; pages are committed as experts land in it.
func (w *prefill) build() error {
	if w.mem != nil {
		return nil
	}
	var size int64
	for p, stride := range w.s.plan.wide {
		w.off[p] = size
		size += roundUp(stride*int64(w.s.cfg.Experts), 4096)
	}
	mem, err := reserve(size)
	if err != nil {
		return fmt.Errorf("reserving %d MiB for a prompt's experts: %w", size>>20, err)
	}
	w.mem = mem
	w.s.stats.SlotBuilds++
	return nil
}

func (w *prefill) drop() error {
	mem := w.mem
	w.mem = nil
	if mem == nil {
		return nil
	}
	return unix.Munmap(mem)
}

func (w *prefill) slot(proj int, e int32) []byte {
	stride := w.s.plan.wide[proj]
	from := w.off[proj] + int64(e)*stride
	return w.mem[from : from+stride : from+stride]
}

// route fills the slot for one layer and binds the layer to it. What the cache
// holds is copied first: only then may its slots change hands.
func (w *prefill) route(layer int, distinct []int32) error {
	s := w.s
	s.stats.PrefillLayers++
	row := s.slotOf[layer*s.cfg.Experts : (layer+1)*s.cfg.Experts]
	s.misses, w.hits = s.misses[:0], w.hits[:0]
	for _, e := range distinct {
		if row[e] < 0 {
			s.misses = append(s.misses, e)
		} else {
			w.hits = append(w.hits, e)
		}
	}
	s.countLookups(layer, len(distinct), s.misses)
	w.bind(layer)
	if len(w.hits) > 0 {
		w.copyHits(layer, row)
		if err := s.waitAll(layer); err != nil {
			return err
		}
	}
	for _, e := range s.misses {
		w.keep(layer, e)
	}
	w.read(layer, row)
	return nil
}

// bind points the layer's expert tensors at the slot.
func (w *prefill) bind(layer int) {
	for p, t := range w.s.plan.tensors[layer] {
		if t != nil {
			base := address(w.mem) + uintptr(w.off[p]+w.s.plan.phase(t))
			w.s.binder.Bind(layer, p, base, w.s.cfg.Experts, w.s.plan.wide[p])
		}
	}
}

// keep admits a missing expert to the cache as well, where the policy values
// it above what it would cost: a prompt larger than the cache keeps its best.
func (w *prefill) keep(layer int, e int32) {
	s := w.s
	if s.admit(layer, e) {
		return
	}
	worse, ok := s.policy.Yield(layer, e)
	if !ok {
		return
	}
	slot := s.evict(layer, worse)
	s.policy.Insert(layer, e)
	s.slotOf[layer*s.cfg.Experts+int(e)] = slot
}

func (w *prefill) copyHits(layer int, row []int32) {
	a := w.s.arenas[w.s.plan.groupOf[layer]]
	w.each(layer, len(w.hits), func(t *Tensor, r request) {
		for _, e := range w.hits {
			r.expert, r.dst, r.from = e, w.slot(t.Proj, e), a.slot(t.Proj, row[e])
			w.s.lanes.queue <- r
		}
	})
}

// read asks for the missing experts, each with a copy for the cache when it
// was admitted and has not yielded since.
func (w *prefill) read(layer int, row []int32) {
	a := w.s.arenas[w.s.plan.groupOf[layer]]
	w.each(layer, len(w.s.misses), func(t *Tensor, r request) {
		for _, e := range w.s.misses {
			r.expert, r.dst, r.also = e, w.slot(t.Proj, e), nil
			if row[e] >= 0 {
				r.also = a.slot(t.Proj, row[e])
			}
			w.s.lanes.queue <- r
		}
	})
}

// each calls f for the layer's projections in reading order, with a request
// that lacks only the expert.
func (w *prefill) each(layer, n int, f func(t *Tensor, r request)) {
	for _, p := range execOrder {
		if t := w.s.plan.tensors[layer][p]; t != nil {
			f(t, request{tensor: t, phase: w.s.plan.phase(t), batch: w.s.lanes.expect(p, n)})
		}
	}
}
