package planner

// terms are what one decoded token costs, in seconds, by what it is spent on.
// Everything is priced per byte of weights: at one token wide each weight is
// read once and multiplied once, so drive, memory and compute compare directly.
type terms struct {
	known   bool
	missing string     // the measurement a missing price waits for
	dense   float64    // weights read for every token
	experts float64    // picked experts, from memory
	faults  float64    // weights faulted in through a mapping
	over    float64    // management and latency
	reads   layerReads // picked experts that were not in the cache
	miss    float64    // share of them
	ioScale float64    // of the reads' times; 0: 1
	fill    float64    // filling the cache for the first time, spread over the run
	overlap bool
}

// total is the time of a token.
func (t terms) total() float64 { return t.dense + t.experts + t.faults + t.wait() + t.fill + t.over }

// wait is the time compute stands still for reads.
func (t terms) wait() float64 {
	if len(t.reads.done) == 0 {
		return 0
	}
	c := t.experts / (t.reads.layers * float64(len(t.reads.done[0])))
	return t.reads.expect(t.miss, func(m int) float64 { return t.reads.wait(m, c, t.scale(), t.overlap) })
}

// io is the time the drive is busy with a token's reads, hidden or not.
func (t terms) io() float64 {
	if len(t.reads.done) == 0 {
		return t.faults
	}
	return t.reads.expect(t.miss, func(m int) float64 { return t.scale() * t.reads.busy[m] })
}

func (t terms) scale() float64 {
	if t.ioScale > 0 {
		return t.ioScale
	}
	return 1
}

// dominant names the largest term.
func (t terms) dominant() string {
	mem, io := t.dense+t.experts, t.io()
	switch {
	case io >= mem && io >= t.over && io > 0:
		return "storage"
	case mem >= t.over:
		return "memory"
	}
	return "management"
}

// streamTerms prices a streamed token at a miss share, on the knobs as they
// are set, with weights multiplied at rate w (bytes per second).
func (st *planning) streamTerms(miss, w float64, repacked bool) terms {
	t := terms{overlap: st.cfg.Overlap, miss: miss, over: st.streamOverhead(miss)}
	if w <= 0 {
		t.missing = "the one-token matmul on the host"
		return t
	}
	t.dense = st.denseSeconds(w, repacked)
	if st.dense.held == 0 && st.m.dense > 0 {
		refault, ok := st.p.Storage.Refault.Get()
		if !ok || refault <= 0 {
			t.missing = "the rate of page faults on the mapping"
			return t
		}
		t.dense = float64(st.m.read) / refault
	}
	t.experts = float64(st.m.cycle) / w
	repack := 0.0
	if repacked {
		r := st.p.Overheads.RepackRate.Or(0)
		if r <= 0 {
			t.missing = "the rate of repacking"
			return t
		}
		repack = st.m.repackable() / r
	}
	reads, ok := st.layerReads(repack)
	switch {
	case ok:
		t.reads = reads
	case miss > 0:
		t.missing = "the drive's read rate"
		return t
	}
	t.known = true
	return t
}

// filling is how many bytes of a cache are filled for the first time, per token
// of a run of that many tokens.
func (st *planning) filling(cache, tokens int64) float64 {
	if tokens <= 0 {
		return 0
	}
	return min(float64(cache), float64(tokens)*float64(st.m.cycle)) / float64(tokens)
}

// fillSeconds is what that costs beside the reads' own price, as far as earlier
// runs measured it.
func (st *planning) fillSeconds(cache, tokens int64) float64 {
	return st.p.Overheads.Fill.Or(0) * st.filling(cache, tokens)
}

// denseSeconds is the time of the weights that are read whole: at the rate of
// their own type where it was measured, else at the experts'.
func (st *planning) denseSeconds(w float64, repacked bool) float64 {
	h := &st.p.Host
	own := h.Dense.Or(0)
	if repacked {
		own = h.DenseRepack.Or(own)
	}
	if own > 0 {
		w = own
	}
	return float64(st.m.read) / w
}

// ioPriced reports whether the drive's reads have a price.
func (st *planning) ioPriced() bool {
	_, ok := st.layerReads(0)
	return ok
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
func (st *planning) residentTerms() terms {
	w := st.residentRate()
	t := terms{over: st.graphOverhead() + st.p.Overheads.Resident.Or(0)}
	if w <= 0 {
		t.missing = "the one-token matmul on the host"
		return t
	}
	t.known = true
	t.dense, t.experts = st.denseSeconds(w, st.residentPacked()), float64(st.m.cycle)/w
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
	w := st.residentRate()
	if w <= 0 { // faults alone would be no bound
		t.missing = "the one-token matmul on the host"
		return t
	}
	t.known = true
	t.faults = float64(st.m.read+st.m.cycle) / r
	t.dense, t.experts = st.denseSeconds(w, st.residentPacked()), float64(st.m.cycle)/w
	return t
}

// residentPacked reports whether a resident or mapped run multiplies repacked
// weights: stock llama.cpp repacks, and residentRepack turns it off where it
// loses.
func (st *planning) residentPacked() bool {
	plain := st.p.Host.Narrow.Or(0)
	packed, ok := st.p.Host.NarrowRepack.Get()
	if !ok || st.cfg.Repack == "off" || packed == plain {
		return false
	}
	return st.pinned("repack") || packed > plain
}

// residentRate is the rate it multiplies them at.
func (st *planning) residentRate() float64 {
	if st.residentPacked() {
		return st.p.Host.NarrowRepack.Value
	}
	return st.p.Host.Narrow.Or(0)
}

// weightRate is the rate the host multiplies weights at, one token wide, with
// the repacking chosen.
func (st *planning) weightRate(repacked bool) float64 {
	if repacked {
		return st.p.Host.NarrowRepack.Or(0)
	}
	return st.p.Host.Narrow.Or(0)
}
