package planner

import "fmt"

// holdable is how much the process may hold and keep.
type holdable struct {
	known  bool
	total  int64 // before the margin
	usable int64 // after it
	margin float64
	prov   Provenance
	source string
}

// findBudget picks the figure that says what can be kept: the measured
// headroom, else an estimate where reclaim compresses, else what is reported.
func (st *planning) findBudget() {
	mem := &st.p.Memory
	h := holdable{prov: Measured}
	reported, ok := reportedBudget(mem)
	switch {
	case mem.Headroom.OK():
		h.known, h.total, h.source = true, mem.Headroom.Value, "held in steps until pages went"
	case ok && mem.Reclaim.Value == ReclaimCompress && mem.Estimate.OK() && mem.Estimate.Value > reported:
		h.known, h.total, h.prov = true, mem.Estimate.Value, Derived
		h.source = fmt.Sprintf("estimated from what the compressor achieves on idle memory; %s is reported available", size(reported))
	case ok:
		h.known, h.total, h.source = true, reported, "reported available; what can be kept was not measured"
	}
	if !h.known {
		st.hold = h
		owed := mem.Holdable.Owed
		if owed == "" {
			owed = "a memory probe"
		}
		st.note("budget", "-", Unprobed, "How much memory may be held is not known.",
			"no fact says how much memory this process may hold, so nothing is sized; owed: "+owed)
		return
	}
	if limit, ok := mem.LimitHeadroom.Get(); ok && limit < h.total {
		h.total, h.source = limit, h.source+", cut to the room under the control group's limit"
	}
	h.margin = st.margin()
	h.usable = h.total - scale(h.total, h.margin)
	st.hold = h
	st.note("budget", size(h.usable), h.prov,
		fmt.Sprintf("%s of %s may be held.", size(h.usable), size(h.total)),
		fmt.Sprintf("%s %s, less a margin of %s because pressure here means %s", size(h.total), h.source, percent(h.margin), reclaimText(mem.Reclaim)))
}

// reportedBudget is the reported figure: the smaller of what is available and
// what the limit leaves.
func reportedBudget(mem *MemoryFacts) (int64, bool) {
	if mem.Holdable.OK() {
		return mem.Holdable.Value, true
	}
	switch {
	case mem.Available.OK() && mem.LimitHeadroom.OK():
		return min(mem.Available.Value, mem.LimitHeadroom.Value), true
	case mem.Available.OK():
		return mem.Available.Value, true
	}
	return mem.LimitHeadroom.Value, mem.LimitHeadroom.OK()
}

// margin is the share kept free for the kind of reclaim this machine has.
func (st *planning) margin() float64 {
	if !st.p.Memory.Reclaim.OK() {
		return st.pol.MarginUnknown
	}
	switch st.p.Memory.Reclaim.Value {
	case ReclaimKill:
		return st.pol.MarginKill
	case ReclaimCompress:
		return st.pol.MarginCompress
	case ReclaimSwap:
		return st.pol.MarginSwap
	case ReclaimNone:
		return st.pol.MarginNone
	}
	return st.pol.MarginUnknown
}

func reclaimText(f Fact[Reclaim]) string {
	if !f.OK() {
		return "something nobody looked up"
	}
	switch f.Value {
	case ReclaimKill:
		return "that the process is ended"
	case ReclaimCompress:
		return "that idle pages are compressed"
	case ReclaimSwap:
		return "writing pages to a disk"
	}
	return "nothing: no swap and no limit takes anonymous pages"
}
