package planner

import "fmt"

// listLeftAlone names the knobs this planner could be expected to set and does
// not: threads (a rule from core classes was refuted by the first machine that
// had them), flash attention, and everything that changes what is computed.
func (st *planning) listLeftAlone() {
	cores := "core classes were not read"
	if classes, ok := st.p.Cores.Classes.Get(); ok {
		cores = "cores, fastest class first:"
		for _, c := range classes {
			cores += fmt.Sprintf(" %d at %.0f MHz", c.Cores, c.MaxMHz)
		}
	}
	st.keep("threads", Decision{
		Provenance: Unprobed, Topic: "threads",
		Brief:  "The number of threads is the default; only a timed sweep could choose better.",
		Reason: cores + "; a count derived from them was measured to be slower, so it takes a sweep of " + flagOf("threads"),
	})
	if nodes, ok := st.p.Cores.NUMA.Get(); ok && nodes > 1 {
		st.note("numa", itoa(nodes), Measured, fmt.Sprintf("The machine has %d memory nodes; nothing is placed by them.", nodes),
			"memory nodes are stated and decide nothing; owed: bandwidth per node")
	}
	st.keep("flash-attn", Decision{
		Provenance: Unprobed, Topic: "flash-attention",
		Brief:  fmt.Sprintf("Flash attention is left to llama.cpp; the context takes %s.", size(st.buffers.context)),
		Reason: fmt.Sprintf("context %s (%s); types are the caller's (%s, %s)", size(st.buffers.context), st.buffers.kvFrom, flagOf("cache-type-k"), flagOf("cache-type-v")),
	})
}
