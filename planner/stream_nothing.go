package planner

import "fmt"

// compareWithMapping keeps the plan that streams nothing reachable: where the
// mapping, with nothing of it resident, is still priced below the stream, the
// stream is not armed. A side without a price moves nothing.
func (st *planning) compareWithMapping() {
	if !st.stream {
		return
	}
	if st.plan.Regime == RegimeOversized {
		if !st.ioPriced() && !st.pinned("moe-stream") {
			st.decline("not even the weights read for every token fit, and the drive's read rate was never measured, so streaming has no price")
			return
		}
	}
	if st.pinned("moe-stream") || !st.cache.known {
		return
	}
	mapped := st.asMapped()
	packed := st.repacked()
	stream := st.streamTerms(1-st.creditedHits(st.cache.bytes), st.weightRate(packed), packed)
	if !mapped.known || !stream.known || stream.total() <= mapped.total() {
		return
	}
	st.stopStreaming("mapping-cheaper",
		fmt.Sprintf("Nothing is streamed: even read through the mapping a token takes %s against %s.", seconds(mapped.total()), seconds(stream.total())),
		fmt.Sprintf("a token costs %s with the file mapped and nothing resident, %s streamed", seconds(mapped.total()), seconds(stream.total())))
}

// asMapped prices the mapping with the layout a mapped run would choose.
func (st *planning) asMapped() terms {
	trial := *st
	if !st.pinned("repack") {
		trial.cfg.Repack = st.def.Repack
		if !st.copiesFit() {
			trial.cfg.Repack = "off"
		}
	}
	return trial.mappedTerms()
}
