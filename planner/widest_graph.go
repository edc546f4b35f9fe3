package planner

import (
	"cmp"
	"fmt"
	"slices"
)

// buffers is what llama.cpp reserves on the host for context and compute.
type buffers struct {
	context int64
	compute int64
	slope   bool // the price of a token of width is known
	kvFrom  string
}

// held is the sum that every other row has to share the budget with.
func (b *buffers) held() int64 { return b.context + b.compute }

// chooseWidth picks the widest graph whose compute buffers stay inside a share
// of what may be held, halving from the context. Wide graphs pay off because
// every piece of a prompt reads its experts again.
func (st *planning) chooseWidth() {
	st.buffers.context, st.buffers.kvFrom = st.contextBytes()
	points, ok := st.p.Buffers.Compute.Get()
	width := st.width()
	st.buffers.compute, st.buffers.slope = computeAt(points, width)
	if st.pinned("ubatch") {
		st.disabled("widest-graph", "ubatch")
		return
	}
	if !ok || !st.buffers.slope || !st.hold.known {
		st.keep("ubatch", Decision{
			Provenance: Unprobed, Topic: "ubatch",
			Brief:  fmt.Sprintf("%d tokens per pass, the default; what a wider pass would cost was not measured.", width),
			Reason: fmt.Sprintf("%s stays at its default: owed a projection of the compute buffers at two widths and a memory budget", flagOf("ubatch")),
		})
		return
	}
	limit := scale(st.hold.usable, st.pol.ComputeShareMax)
	best := st.pol.UBatchMin
	for w := int64(st.cfg.CtxSize); w >= st.pol.UBatchMin; w /= 2 {
		if at, _ := computeAt(points, w); at+st.deviceComputeAt(w) <= limit {
			best = w
			break
		}
	}
	best = min(best, int64(st.cfg.CtxSize))
	at, _ := computeAt(points, best)
	wider, _ := computeAt(points, best*2)
	st.buffers.compute = at
	st.decide("ubatch", itoa(best), Decision{
		Provenance: PolicyP, Topic: "ubatch",
		Brief: fmt.Sprintf("%d tokens per pass; a pass twice as wide would take %s from the cache.", best, size(wider-at)),
		Reason: fmt.Sprintf("the widest graph, halving from a context of %d, whose compute buffers (%s, projected at %d widths) stay inside %s of the %s that may be held",
			st.cfg.CtxSize, size(at), len(points), percent(st.pol.ComputeShareMax), size(st.hold.usable)),
	})
}

// noteBuffers says that a streamed run's budget lacks rows nobody projected.
func (st *planning) noteBuffers() {
	b := &st.p.Buffers
	if !st.hold.known || (b.Compute.OK() && st.buffers.kvFrom != "unknown") {
		return
	}
	missing := "compute buffers"
	if st.buffers.kvFrom == "unknown" {
		missing = "context and compute buffers"
	}
	if st.buffers.kvFrom == "unknown" && b.Compute.OK() {
		missing = "context"
	}
	st.note("unmeasured-buffers", "-", Unprobed, "What the "+missing+" take is not known, and the cache may have their room.",
		"the ledger has no row for the "+missing+"; owed: llama.cpp's projection at two widths; "+b.Compute.Reason)
}

// deviceComputeAt is the largest compute buffer at a width of a device that
// draws on this pool.
func (st *planning) deviceComputeAt(width int64) int64 {
	var most int64
	for i := range st.p.Devices {
		d := &st.p.Devices[i]
		if Ask(d.Usable) == No || st.ownMemory(d) {
			continue
		}
		at, _ := computeAt(d.Compute.Value, width)
		most = max(most, at)
	}
	return most
}

// width is the graph width the run opens with, in tokens.
func (st *planning) width() int64 {
	if st.cfg.UBatchSize > 0 {
		return min(int64(st.cfg.UBatchSize), int64(st.cfg.CtxSize))
	}
	return min(st.pol.UBatchDefault, int64(st.cfg.CtxSize))
}

// computeAt prices a width from the projected points: a straight line through
// the two nearest. It is false with fewer than two widths.
func computeAt(points []WidthPoint, width int64) (int64, bool) {
	if len(points) == 0 {
		return 0, false
	}
	pts := slices.Clone(points)
	slices.SortFunc(pts, func(a, b WidthPoint) int { return cmp.Compare(a.Width, b.Width) })
	if len(pts) == 1 || pts[0].Width == pts[len(pts)-1].Width {
		return pts[len(pts)-1].Bytes, false
	}
	i := 1
	for i < len(pts)-1 && pts[i].Width < width {
		i++
	}
	a, b := pts[i-1], pts[i]
	if a.Width == b.Width {
		return b.Bytes, true
	}
	slope := float64(b.Bytes-a.Bytes) / float64(b.Width-a.Width)
	return max(0, int64(float64(a.Bytes)+slope*float64(width-a.Width))), true
}
