package backends

import (
	"errors"
	"fmt"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
)

// rateFact is a rate that may be believed: one whose result was right.
func rateFact(r *device.Rate, why, how string) planner.Fact[float64] {
	if r == nil {
		return planner.UnknownFact[float64](why, owedHost)
	}
	if !(r.NMSE <= config.MaxNMSE) {
		return planner.UnknownFact[float64](fmt.Sprintf("its result is wrong (NMSE %.2g, allowed %.2g), so its rate is not looked at", r.NMSE, config.MaxNMSE), owedHost)
	}
	return planner.MeasuredFact(r.BytesPerS, r.Spread, fmt.Sprintf("%s; NMSE %.1g", how, r.NMSE))
}

// hostFacts are the CPU backend's rates.
func hostFacts(r *device.Report, m *model.Model, cfg config.Config, at string) planner.HostFacts {
	h := probes.Local()
	spec, _ := specOf(m, threads(h, cfg), h.Memory().Holdable.Or(0))
	how := fmt.Sprintf("expert matmul of %d x %d, %d threads", spec.Shape.Cols, spec.Shape.Rows, spec.Threads)
	one := how + ", one token wide, weights swept from memory"
	if n := len(spec.Classes); n > 1 {
		one = fmt.Sprintf("expert matmuls of %d shapes as the model mixes them, %d threads, one token wide, weights swept from memory", n, spec.Threads)
	}
	dense := fmt.Sprintf("matmul of %d columns, type of most other weights, %d threads, one token wide", spec.Dense.Cols, spec.Threads)
	wide := fmt.Sprintf("%s, %d tokens wide: weight bytes times tokens", how, device.WideTokens)
	f := planner.HostFacts{
		Narrow:       rateFact(r.Narrow, r.Why["narrow"], one),
		Wide:         rateFact(r.Wide, r.Why["wide"], wide),
		NarrowRepack: rateFact(r.NarrowRepack, r.Why["narrow-repack"], one+", repacked"),
		WideRepack:   rateFact(r.WideRepack, r.Why["wide-repack"], wide+", repacked"),
		CopyRate:     planner.UnknownFact[float64]("no copy was timed", owedHost),
		Dense:        rateFact(r.Dense, "the model has no such matrix, or it could not be timed", dense),
		DenseRepack:  rateFact(r.DenseRepack, "the CPU backend has no other layout for it", dense+", repacked"),
	}
	if r.CopyRate > 0 {
		f.CopyRate = planner.MeasuredFact(r.CopyRate, 0, "fastest of three copies between resident pages, one thread")
	}
	for _, x := range []*planner.Fact[float64]{&f.Narrow, &f.Wide, &f.NarrowRepack, &f.WideRepack, &f.CopyRate, &f.Dense, &f.DenseRepack} {
		*x = x.Timed(0, at)
	}
	return f
}

// markRepackable notes on the model's slice classes which of them the CPU
// backend lays out anew.
func markRepackable(p *planner.Profile, m *model.Model, r *device.Report) {
	spec, _ := specOf(m, 1, 0)
	can := map[string]bool{}
	for i, c := range spec.Classes {
		if i < len(r.Repacks) && r.Repacks[i] {
			can[classKey(c.Type, c.Slice)] = true
		}
	}
	for i := range p.Model.Slices.Value {
		s := &p.Model.Slices.Value[i]
		for j := range m.ExpertTensors {
			t := &m.ExpertTensors[j]
			if t.Projection == s.Projection && t.Quant == s.Quant && t.SliceBytes == s.Bytes {
				s.Repackable = can[classKey(t.Type, t.SliceBytes)]
				break
			}
		}
	}
}

func classKey(typ uint32, slice int64) string { return fmt.Sprintf("%d/%d", typ, slice) }

// overheads fills in what the host's child measured of the engine's own costs.
func overheads(p *planner.Profile, a *answer, at string) {
	if g := graphOf(a); g != nil {
		how := fmt.Sprintf("llama.cpp's own graph of one token, the matmuls over weights left out: %d nodes in %.3g ms", g.Nodes, 1e3*g.Seconds)
		p.Overheads.PerNode = planner.MeasuredFact(g.Seconds/float64(g.Nodes), g.Spread, how).Timed(0, at)
		p.Overheads.Nodes = planner.MeasuredFact(int64(g.Nodes), 0, "computing nodes of llama.cpp's one-token graph that multiply with no weight").Timed(0, at)
	} else {
		tinyNodes(p, a, at)
	}
	if r := a.Report.RepackRate; r > 0 {
		p.Overheads.RepackRate = planner.MeasuredFact(r, 0, "one thread laying the probe's weights out anew; lanes share the processors with compute").Timed(0, at)
	}
}

// graphOf is the timed graph, nil where llama.cpp's could not be copied.
func graphOf(a *answer) *device.Graph {
	if a.Projection == nil {
		return nil
	}
	return a.Projection.Graph
}

// tinyNodes prices a node by what one costs that computes next to nothing.
func tinyNodes(p *planner.Profile, a *answer, at string) {
	if n := a.Report.PerNode; n > 0 {
		p.Overheads.PerNode = planner.MeasuredFact(n, 0, "fastest of many graphs of 64 matmuls that compute next to nothing").Timed(0, at)
	}
	if a.Projection != nil && a.Projection.Nodes > 0 {
		p.Overheads.Nodes = planner.MeasuredFact(int64(a.Projection.Nodes), 0, "computing nodes of llama.cpp's one-token graph").Timed(0, at)
	}
}

// deviceFacts are an accelerator's facts, from its child's answer or from how
// the child ended.
func deviceFacts(d device.Info, a *answer, err error) planner.Device {
	f := planner.Device{Name: d.Name, Description: d.Description}
	if f.HostMemory = (*topology)(nil).fact(); a != nil {
		f.HostMemory = a.Memory.fact()
	}
	f.HostBuffer = planner.MeasuredFact(d.HostBuffer, 0, "advertised")
	f.HostPtr = planner.UnknownFact[bool]("not advertised, which is no evidence of absence", "a safe test of wrapping host memory")
	if d.HostPtr {
		f.HostPtr = planner.MeasuredFact(true, 0, "advertised")
	}
	f.FreeBytes, f.TotalBytes = sizeFact(d.Free), sizeFact(d.Total)
	neverAsked(&f)
	if err != nil {
		return unusable(f, err)
	}
	r := a.Report
	f.Usable = planner.MeasuredFact(true, 0, "its probe answered")
	f.RunsExpertOp = planner.MeasuredFact(r.RunsAll, 0, "the expert matmul in every type of the model, at both widths")
	f.Identity, f.NMSE = agreement(r.Narrow, r.Why["narrow"], r.Against)
	f.IdentityWide, f.NMSEWide = agreement(r.Wide, r.Why["wide"], r.Against)
	f.Narrow = rateFact(r.Narrow, r.Why["narrow"], "expert matmul, one token wide")
	f.Wide = rateFact(r.Wide, r.Why["wide"], fmt.Sprintf("expert matmul, %d tokens wide", device.WideTokens))
	f.CopyRate = positive(r.SendRate, "weights sent to it from the host")
	f.SplitSeconds = positive(r.Crossing, "half of what a matmul that computes next to nothing takes, its answer read back")
	f.Compute = deviceCompute(d.Name, a)
	return f
}

// neverAsked are the questions no probe here can put safely.
func neverAsked(f *planner.Device) {
	unanswered := planner.UnknownFact[float64]("its probe did not answer", "`bmoe probe --device "+f.Name+" -m MODEL`")
	flag := planner.UnknownFact[bool](unanswered.Reason, unanswered.Owed)
	f.RunsExpertOp, f.Identity, f.IdentityWide = flag, flag, flag
	f.NMSE, f.NMSEWide, f.Narrow, f.Wide, f.CopyRate, f.SplitSeconds = unanswered, unanswered, unanswered, unanswered, unanswered, unanswered
	f.Compute = planner.UnknownFact[[]planner.WidthPoint](unanswered.Reason, unanswered.Owed)
	f.HostPtrHonour = planner.UnknownFact[bool]("trying it on a device that cannot ends the process", "a guard in llama.cpp around the call")
	f.NeedsRepack = planner.UnknownFact[bool]("no backend publishes it", "the matmul with weights left in host memory")
	f.BuffersExempt = planner.UnknownFact[bool]("no backend publishes whether its buffers are locked host memory", "the system's count of locked memory around an allocation")
	f.Places = planner.UnknownFact[bool]("llama.cpp's capacity fitter was not asked", "the fitter's answer for this model")
	f.TakesFullIDs = planner.UnknownFact[bool]("a matmul is not a prompt", "`--prefill-device "+f.Name+"`, which compares on the model")
}

// positive is a measurement that stays unknown when it could not be taken.
func positive(v float64, how string) planner.Fact[float64] {
	if v <= 0 {
		return planner.UnknownFact[float64]("it could not be timed", owedHost)
	}
	return planner.MeasuredFact(v, 0, how)
}

// deviceCompute is the compute buffer of a context that offloads its wide
// matmuls to the device, the copies of weights it stages included.
func deviceCompute(name string, a *answer) planner.Fact[[]planner.WidthPoint] {
	if a.Projection == nil {
		return planner.UnknownFact[[]planner.WidthPoint](a.ProjectErr, owedBuffers)
	}
	_, points := projected(a.Projection, name)
	if len(points) == 0 {
		return planner.UnknownFact[[]planner.WidthPoint]("llama.cpp's projection puts nothing on it", owedBuffers)
	}
	return planner.MeasuredFact(points, 0, "llama.cpp's projection with wide matmuls offloaded, by graph width")
}

// unusable is a device whose probe did not answer.
func unusable(f planner.Device, err error) planner.Device {
	var ended *probes.ChildError
	if !errors.As(err, &ended) {
		f.Usable = planner.UnknownFact[bool](err.Error(), "`bmoe probe --device "+f.Name+" -m MODEL`")
		return f
	}
	f.Usable = planner.MeasuredFact(false, 0, err.Error())
	return f
}

// agreement says whether a result is the host's.
func agreement(r *device.Rate, why, against string) (planner.Flag, planner.Fact[float64]) {
	if r == nil {
		return planner.UnknownFact[bool](why, owedHost), planner.UnknownFact[float64](why, owedHost)
	}
	how := fmt.Sprintf("NMSE %.2g against %s, %.2g allowed", r.NMSE, against, config.MaxNMSE)
	return planner.MeasuredFact(r.NMSE <= config.MaxNMSE, 0, how), planner.MeasuredFact(r.NMSE, 0, how)
}

// sizeFact is a device's memory; one that states no size states nothing.
func sizeFact(n int64) planner.Fact[int64] {
	if n <= 0 {
		return planner.UnknownFact[int64]("the device states no size", "its driver's own tool")
	}
	return planner.MeasuredFact(n, 0, "stated by its backend")
}
