package planner

import "math"

// terms are what one decoded token costs, in seconds, by what it is spent on.
// Everything is priced per byte of weights: at one token wide each weight is
// read once and multiplied once, so drive, memory and compute compare directly.
type terms struct {
	known   bool
	missing string  // the measurement a missing price waits for
	dense   float64 // weights read for every token
	experts float64 // picked experts, from memory
	io      float64 // picked experts that were not in the cache, from the drive
	over    float64 // management and latency
	n       float64 // projections that reads and compute alternate over
	overlap bool
}

// total is the time of a token. Overlapped, one projection's reads run behind
// the matmul before it: the first read and the last matmul of a layer cannot
// hide, the dense half of the layer never does.
func (t terms) total() float64 {
	if !t.overlap {
		return t.dense + t.experts + t.io + t.over
	}
	n := max(1, t.n)
	return t.dense + max(t.io+t.experts/n, t.io/n+t.experts) + t.over
}

// dominant names the largest term.
func (t terms) dominant() string {
	mem := t.dense + t.experts
	switch {
	case t.io >= mem && t.io >= t.over && t.io > 0:
		return "storage"
	case mem >= t.over:
		return "memory"
	}
	return "management"
}

// streamTerms prices a streamed token at a miss share, on the knobs as they
// are set, with weights multiplied at rate w (bytes per second).
func (st *planning) streamTerms(miss, w float64, repacked bool) terms {
	t := terms{overlap: st.cfg.Overlap, n: float64(st.m.projections()), over: st.streamOverhead(miss)}
	if w <= 0 {
		t.missing = "the one-token matmul on the host"
		return t
	}
	t.dense = float64(st.m.read) / w
	if st.dense.held == 0 && st.m.dense > 0 {
		refault, ok := st.p.Storage.Refault.Get()
		if !ok || refault <= 0 {
			t.missing = "the rate of page faults on the mapping"
			return t
		}
		t.dense = float64(st.m.read) / refault
	}
	t.experts = float64(st.m.cycle) / w
	io, ok := st.ioSeconds(miss)
	if !ok {
		t.missing = "the drive's read rate"
		return t
	}
	t.io = io
	if repacked {
		r := st.p.Overheads.RepackRate.Or(0)
		if r <= 0 {
			t.missing = "the rate of repacking"
			return t
		}
		t.io += miss * float64(st.m.cycle) * st.m.repackable() / r
	}
	t.known = true
	return t
}

// ioSeconds is the time reads of a token's missing experts take.
func (st *planning) ioSeconds(miss float64) (float64, bool) {
	if miss <= 0 {
		return 0, true
	}
	if b, ok := st.p.Storage.Buffered.Get(); ok && !st.cfg.ODirect && b > 0 {
		return miss * float64(st.m.cycle) / b, true
	}
	points := st.laneRates()
	if len(points) == 0 {
		return 0, false
	}
	layers := float64(max(1, st.m.layers))
	slices := layers * float64(max(1, st.m.used*st.m.projections()))
	slice := int64(math.Ceil(float64(st.m.cycle) / slices))
	return layers * readSeconds(points, st.cfg.IOThreads, slice, miss*slices/layers), true
}

// streamOverhead is the engine's own time per token, as far as it was measured.
func (st *planning) streamOverhead(miss float64) float64 {
	o := &st.p.Overheads
	lookups := float64(st.m.layers * st.m.used)
	return st.graphOverhead() + o.PerLayer.Or(0)*float64(st.m.layers) + o.PerLookup.Or(0)*lookups +
		o.PerRead.Or(0)*miss*lookups*float64(st.m.projections())
}

// graphOverhead is what the graph's nodes cost beside the bytes they read.
func (st *planning) graphOverhead() float64 {
	return st.p.Overheads.PerNode.Or(0) * float64(st.p.Overheads.Nodes.Or(0))
}

// residentTerms prices a token of a model that is held whole.
func (st *planning) residentTerms(w float64) terms {
	t := terms{over: st.graphOverhead()}
	if w <= 0 {
		t.missing = "the one-token matmul on the host"
		return t
	}
	t.known = true
	t.dense, t.experts = float64(st.m.read)/w, float64(st.m.cycle)/w
	return t
}

// mappedTerms prices a token of a model left mapped with nothing of it
// resident: the bound on what a declined plan costs.
func (st *planning) mappedTerms() terms {
	t := terms{over: st.graphOverhead()}
	r, ok := st.p.Storage.Refault.Get()
	if !ok || r <= 0 {
		t.missing = "the rate of page faults on the mapping"
		return t
	}
	t.known = true
	t.io = float64(st.m.read+st.m.cycle) / r
	if w := st.residentRate(); w > 0 {
		t.dense, t.experts = float64(st.m.read)/w, float64(st.m.cycle)/w
	}
	return t
}

// residentRate is the rate a resident or mapped run multiplies weights at:
// llama.cpp repacks on its own unless it is told not to.
func (st *planning) residentRate() float64 {
	plain := st.p.Host.Narrow.Or(0)
	packed, ok := st.p.Host.NarrowRepack.Get()
	if !ok || st.cfg.Repack == "off" {
		return plain
	}
	if !st.pinned("repack") {
		return max(plain, packed) // residentRepack turns it off where it loses
	}
	return packed
}

// weightRate is the rate the host multiplies weights at, one token wide, with
// the repacking chosen.
func (st *planning) weightRate(repacked bool) float64 {
	if repacked {
		return st.p.Host.NarrowRepack.Or(0)
	}
	return st.p.Host.Narrow.Or(0)
}
