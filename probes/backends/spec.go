// Package backends asks llama.cpp's compute backends for facts: what is
// registered, how fast each device multiplies a model's experts and whether it
// gives the right answer, what a context would hold. A driver may end the
// process that touches it, so the asking is done by a child, this same program
// started again; a child that dies or hangs is a fact about its device.
package backends

import (
	"slices"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner/config"
)

const (
	// sweepBytes of weights are gone through one token wide: several times what a
	// processor's caches hold, so that the rate is memory's. Going through 1.5
	// times a cache gave a tenth more than going through 4 times.
	sweepBytes = 128 << 20
	// deviceSweep is that of an accelerator: its caches are smaller, and weights
	// have to be sent there.
	deviceSweep = 48 << 20
	// denseRows and the like stand in for an expert where a model has none.
	denseExperts = 8
)

// specOf is the matmul that speaks for a model: the shape most of its expert
// bytes come in. hold bounds the weights, bytes. It is false for a model
// without any matrix.
func specOf(m *model.Model, threads int, hold int64) (device.Spec, bool) {
	s := device.Spec{Threads: threads, Sweep: sweepBytes}
	if hold > 0 {
		s.Sweep = min(s.Sweep, hold/8)
	}
	s.Dense, _ = denseShape(m)
	bytes := map[device.Shape]int64{}
	for i := range m.ExpertTensors {
		t := &m.ExpertTensors[i]
		x := device.Shape{Type: t.Type, Cols: t.Dims[0], Rows: t.Dims[1], Experts: t.Experts, Used: max(1, m.ExpertsUsed), Slice: t.SliceBytes}
		if !slices.Contains(s.Classes, x) {
			s.Classes = append(s.Classes, x)
		}
		bytes[x] += t.Bytes
	}
	if len(s.Classes) == 0 {
		s.Shape, s.Dense = s.Dense, device.Shape{}
		return s, s.Shape.Slice > 0
	}
	for _, x := range s.Classes {
		s.Bytes = append(s.Bytes, bytes[x])
	}
	s.Shape = s.Classes[0]
	for _, x := range s.Classes {
		if bytes[x] > bytes[s.Shape] {
			s.Shape = x
		}
	}
	return s, true
}

// denseShape takes the largest matrix of a model that has no experts and cuts
// it into a few.
func denseShape(m *model.Model) (device.Shape, bool) {
	var best device.Shape
	for i := range m.Dense {
		t := &m.Dense[i]
		if len(t.Dims) == 2 && t.Dims[1] >= denseExperts && t.Bytes > best.Slice*denseExperts {
			rows := t.Dims[1] / denseExperts
			best = device.Shape{Type: t.Type, Cols: t.Dims[0], Rows: rows, Experts: denseExperts, Used: 1, Slice: t.Bytes / t.Dims[1] * rows}
		}
	}
	return best, best.Slice > 0
}

// widths are the graph widths that are projected: the widest a context allows,
// half of it, llama.cpp's default, and the one that was asked for.
func widths(c config.Config) []int64 {
	ctx := int64(c.CtxSize)
	all := []int64{ctx, max(1, ctx/2), min(ctx, config.DefaultUBatch)}
	if c.UBatchSize > 0 {
		all = append(all, min(ctx, int64(c.UBatchSize)))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
