package planner

import "fmt"

// needsAir asks the second question about a model that fits: is it left alone?
// Where a reclaim is cheap for the kernel, pages of a model that just fits are
// taken back and faulted in again, which costs far more than streaming. Where
// reclaim writes to a disk, ends the process or does not exist, fitting is
// enough; and where nobody looked, the evidence does not apply.
func (st *planning) needsAir() bool {
	if !st.p.Memory.Reclaim.OK() || st.p.Memory.Reclaim.Value != ReclaimCompress {
		return false
	}
	whole := st.m.routed + st.m.dense
	rest := st.buffers.context + st.defaultCompute()
	return whole+rest+scale(whole, st.pol.FitsAirRatio) > st.hold.usable
}

func (st *planning) explainAir() {
	whole := st.m.routed + st.m.dense
	st.plan.Regime = RegimeStream
	st.decide("moe-stream", "on", Decision{
		Provenance: PolicyP, Topic: "fits-needs-air",
		Brief: fmt.Sprintf("The model's %s fit, but leave under %s of room on a machine that compresses idle memory, so experts are streamed.", size(whole), percent(st.pol.FitsAirRatio)),
		Reason: fmt.Sprintf("%s + buffers are inside %s, yet reclaim compresses here, so residency must leave %s beyond the model (%s of it) or pages are taken and faulted back",
			size(whole), size(st.hold.usable), size(scale(whole, st.pol.FitsAirRatio)), percent(st.pol.FitsAirRatio)),
	})
}
