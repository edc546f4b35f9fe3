package planner

// modelView is the model as this run sees it: at the routing width in use and
// with what a placement moved to devices taken off. Sizes in bytes.
type modelView struct {
	known   bool // the sizes below are facts
	moe     bool
	routed  int64 // routed experts on the host
	cycle   int64 // expert bytes one token needs
	dense   int64 // everything else the graph reads
	read    int64 // of that, read whole for every token
	layer   int64 // experts of the largest layer
	batch   int64 // experts one token needs of the largest layer
	layers  int64 // with routed experts
	experts int64
	used    int64
	slices  []SliceClass
	quant   string  // of most routed bytes
	pad     float64 // arena bytes per expert byte: slots are read at the drive's alignment
}

func viewModel(m *ModelFacts, used int, align int64) modelView {
	v := modelView{
		experts: m.Experts.Value, used: m.ExpertsUsed.Value, layers: m.MoeLayers.Value,
		routed: m.RoutedBytes.Value, cycle: m.TokenCycle.Value, layer: m.LayerExperts.Value,
		read: m.DenseRead.Value, dense: m.DenseRead.Value + m.DenseRow.Value, slices: m.Slices.Value,
	}
	v.moe = m.Experts.OK() && m.Experts.Value > 0
	v.known = m.Experts.OK() && m.DenseRead.OK()
	if v.moe {
		v.known = v.known && m.RoutedBytes.OK() && m.TokenCycle.OK() && v.routed > 0 && v.cycle > 0
	}
	if used > 0 && v.used > 0 {
		v.cycle = v.cycle * int64(used) / v.used
		v.used = int64(used)
	}
	if v.layer == 0 && v.layers > 0 {
		v.layer = v.routed / v.layers
	}
	if q := m.Quants.Value; len(q) > 0 {
		v.quant = q[0].Quant
	}
	v.pad = 1
	if v.routed > 0 && v.layers > 0 {
		v.pad += float64(v.layers*v.experts*v.projections()*align) / float64(v.routed)
	}
	if v.experts > 0 {
		v.batch = v.layer * min(v.used, v.experts) / v.experts
	}
	return v
}

// projections is how many expert tensors a layer has: 3, or 2 where gate and
// up are fused.
func (v *modelView) projections() int64 {
	seen := map[string]bool{}
	for _, s := range v.slices {
		seen[s.Projection] = true
	}
	if len(seen) == 0 {
		return 3
	}
	return int64(len(seen))
}

// sliceBytes is the size of the slice that most routed bytes are in: the
// request size that decides which point of the rate curve applies.
func (v *modelView) sliceBytes() int64 {
	totals := map[int64]int64{}
	var best int64
	for _, s := range v.slices {
		totals[s.Bytes] += s.Bytes * max(s.Layers, 1)
		if t := totals[s.Bytes]; best == 0 || t > totals[best] || (t == totals[best] && s.Bytes > best) {
			best = s.Bytes
		}
	}
	if best == 0 && v.layers > 0 && v.used > 0 {
		best = v.cycle / (v.layers * v.used * 3)
	}
	return best
}

// whole is the arena that holds every expert.
func (v *modelView) whole() int64 { return int64(float64(v.routed) * v.pad) }

// repackable is the share of routed bytes that the CPU can repack. Where the
// slices do not say, it is the type the repacked rate was measured with.
func (v *modelView) repackable() float64 {
	var all, flagged, same float64
	for _, s := range v.slices {
		b := float64(s.Bytes) * float64(max(s.Layers, 1))
		all += b
		if s.Repackable {
			flagged += b
		}
		if s.Quant == v.quant {
			same += b
		}
	}
	switch {
	case all == 0:
		return 1
	case flagged > 0:
		return flagged / all
	}
	return same / all
}
