package planner

import "fmt"

// classify names the regime and decides whether experts are streamed at all.
func (st *planning) classify() {
	regime, why := st.regime()
	st.plan.Regime, st.why = regime, why
	if st.pinned("moe-stream") {
		st.stream = st.cfg.MoeStream && (st.m.moe || !st.p.Model.Experts.OK())
		st.disabled("regime", "moe-stream")
		st.note("regime", regime, st.regimeProvenance(), "The model would be classed as "+regime+".", why)
		if !st.stream {
			st.residentWidth()
		}
		return
	}
	switch regime {
	case RegimeFits:
		st.air = st.needsAir()
		st.stream = st.air
	case RegimeStream, RegimeOversized:
		st.stream = true
	}
	if st.air {
		st.explainAir()
		return
	}
	brief := map[string]string{
		RegimeUnknown:   "Left as llama.cpp runs it: the model or the memory is not known.",
		RegimeDense:     "This model has no routed experts, so there is nothing to stream.",
		RegimeFits:      fmt.Sprintf("The model's %s fit in the %s that may be held, so nothing is streamed.", size(st.m.routed+st.m.dense), size(st.hold.usable)),
		RegimeStream:    fmt.Sprintf("%s of experts do not fit in %s, so they are read as needed.", size(st.m.routed), size(st.hold.usable)),
		RegimeOversized: fmt.Sprintf("Even the %s read for every token do not fit in %s.", size(st.m.dense), size(st.hold.usable)),
	}[regime]
	st.decide("moe-stream", onOff(st.stream), Decision{Provenance: st.regimeProvenance(), Topic: regime, Brief: brief, Reason: why})
	if !st.stream {
		st.residentWidth()
	}
}

func (st *planning) regimeProvenance() Provenance {
	if st.plan.Regime == RegimeUnknown {
		return Unprobed
	}
	return Derived
}

// regime compares the model with the budget.
func (st *planning) regime() (string, string) {
	if st.p.Model.Experts.OK() && !st.m.moe {
		return RegimeDense, "the file has no routed experts; streaming has nothing to do and llama.cpp's defaults stand"
	}
	if !st.m.known {
		return RegimeUnknown, "the model's expert and dense sizes are not known; owed: its metadata"
	}
	if !st.hold.known {
		return RegimeUnknown, "what may be held is not known; owed: a memory probe"
	}
	whole := st.m.routed + st.m.dense
	rest := st.buffers.context + st.defaultCompute()
	switch {
	case whole+rest <= st.hold.usable:
		return RegimeFits, fmt.Sprintf("experts %s + other weights %s + buffers %s are inside the %s that may be held", size(st.m.routed), size(st.m.dense), size(rest), size(st.hold.usable))
	case st.m.dense+st.buffers.held()+st.m.batch <= st.hold.usable:
		return RegimeStream, fmt.Sprintf("experts %s + other weights %s + buffers %s exceed the %s that may be held, the other weights and buffers alone do not", size(st.m.routed), size(st.m.dense), size(rest), size(st.hold.usable))
	}
	return RegimeOversized, fmt.Sprintf("other weights %s + buffers %s + one layer's picks %s exceed the %s that may be held", size(st.m.dense), size(st.buffers.held()), size(st.m.batch), size(st.hold.usable))
}

// defaultCompute is the compute buffer at the width a resident run opens with.
func (st *planning) defaultCompute() int64 {
	width := min(st.pol.UBatchDefault, int64(st.cfg.CtxSize))
	if st.pinned("ubatch") {
		width = st.width()
	}
	at, _ := computeAt(st.p.Buffers.Compute.Value, width)
	return at
}

// residentWidth puts the graph width back to what suits a run that streams
// nothing: llama.cpp's own, or that of the placement it runs with.
func (st *planning) residentWidth() {
	st.defaultWidth()
	if st.plan.Placement != nil {
		st.placedWidth(true)
	}
}

// defaultWidth puts the graph width back to llama.cpp's own: with the weights
// in memory a narrow graph costs no reads.
func (st *planning) defaultWidth() {
	if st.hold.known && st.buffers.context+st.defaultCompute() > st.hold.usable {
		return // a wider graph would not even fit by itself
	}
	st.buffers.compute = st.defaultCompute()
	if st.pinned("ubatch") || st.cfg.UBatchSize == st.def.UBatchSize {
		return
	}
	st.decide("ubatch", itoa(int64(st.def.UBatchSize)), Decision{
		Provenance: Derived, Topic: "ubatch",
		Brief:  fmt.Sprintf("%d tokens per pass, the default: without streaming a wider pass saves no reads.", min(st.pol.UBatchDefault, int64(st.cfg.CtxSize))),
		Reason: "nothing is streamed, so a narrow graph reads no expert twice and llama.cpp's own width stands",
	})
}
