package probes

import (
	"context"

	"github.com/bmoe/bmoe/planner"
)

const (
	noEngine   = "this program was built without the engine"
	owedEngine = "the same probe by a build that links llama.cpp"
)

func (c *composition) probeBackends(ctx context.Context) {
	if c.opts.Engine == nil {
		c.profile.Backends = planner.BackendFacts{
			Looked: planner.UnknownFact[bool](noEngine, owedEngine),
			Linked: planner.UnknownFact[int64](noEngine, owedEngine),
			Loaded: planner.UnknownFact[int64](noEngine, owedEngine),
		}
		return
	}
	c.profile.Backends = c.opts.Engine.Backends(ctx, c.model, c.cfg)
}

func (c *composition) probeDevices(ctx context.Context) {
	if c.opts.Engine != nil {
		c.profile.Devices = c.opts.Engine.Devices(ctx, c.model, c.cfg)
	}
}

func (c *composition) probeBandwidth(ctx context.Context) {
	if c.opts.Engine == nil {
		c.profile.Host = UnknownHost(noEngine, owedEngine)
		return
	}
	c.opts.Engine.Bandwidth(ctx, c.model, c.cfg, &c.profile)
}

// UnknownHost is the host's rates where they were not, or could not be, taken.
func UnknownHost(why, owed string) planner.HostFacts {
	f := planner.UnknownFact[float64](why, owed)
	return planner.HostFacts{Narrow: f, Wide: f, NarrowRepack: f, WideRepack: f, CopyRate: f, Dense: f, DenseRepack: f}
}

func (c *composition) probeBuffers(ctx context.Context) {
	if c.opts.Engine == nil {
		c.profile.Buffers = planner.BufferFacts{
			Context: planner.UnknownFact[int64](noEngine, owedEngine),
			Compute: planner.UnknownFact[[]planner.WidthPoint](noEngine, owedEngine),
		}
		return
	}
	c.profile.Buffers = c.opts.Engine.Buffers(ctx, c.model, c.cfg)
}

func (c *composition) probePlacement(ctx context.Context) {
	if c.opts.Engine == nil {
		c.profile.Placement = UnknownPlacement(noEngine, owedEngine)
		return
	}
	c.profile.Placement = c.opts.Engine.Placement(ctx, c.model, c.cfg, c.profile.Devices)
}

// UnknownPlacement is the placement of a fitter that was not asked.
func UnknownPlacement(why, owed string) planner.PlacementFacts {
	n := planner.UnknownFact[int64](why, owed)
	flag := planner.UnknownFact[bool](why, owed)
	return planner.PlacementFacts{
		Asked: flag, GPULayers: n, Shares: planner.UnknownFact[[]planner.DeviceShare](why, owed),
		Overrides: planner.UnknownFact[string](why, owed), HostExperts: n, HostDense: n,
		HostContext: n, HostCompute: n, Width: n, SplitFFN: flag,
	}
}

// learn fills in what only runs can teach, and says what is owed where they
// have not.
func (c *composition) learn(ctx context.Context) {
	const nothing = "no run of this build on this machine is on record"
	o, owed := &c.profile.Overheads, "`bmoe run` of this model, which records it"
	for _, f := range []*planner.Fact[float64]{&o.PerLookup, &o.PerLayer, &o.PerNode, &o.PerRead, &o.RepackRate, &o.ReadsScale, &o.Fill, &o.Resident, &o.Prefill, &o.Residual} {
		if !f.OK() {
			*f = planner.UnknownFact[float64](nothing, owed)
		}
	}
	if !o.Nodes.OK() {
		o.Nodes = planner.UnknownFact[int64](nothing, owed)
	}
	c.profile.Hits.Curves = planner.UnknownFact[[]planner.HitCurve]("no routing of this model is on record", "`bmoe run --route-trace FILE`, then `bmoe fit --trace FILE`")
	c.profile.Hits.Fit = planner.UnknownFact[planner.HitFit]("no fit of this model is on record", "`bmoe fit -m MODEL` after some runs")
	if c.opts.Learn == nil {
		return
	}
	if err := c.opts.Learn(ctx, c.model, &c.profile); err != nil {
		why := "what earlier runs taught could not be read: " + err.Error()
		c.profile.Hits.Fit = planner.UnknownFact[planner.HitFit](why, "`bmoe db check`")
	}
}
