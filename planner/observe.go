package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bmoe/bmoe/planner/config"
)

// Observation is what one finished run measured, as far as a later plan can
// learn from it: a run of this model, on this machine, by this build.
type Observation struct {
	Config           config.Config
	DecodeSPerToken  float64
	ManageSPerLookup float64 // 0: not counted
	ByteHitRate      float64 // of decode, share of bytes that were not read
	PrefillTokensPerS,
	PromptTokens float64
	CacheRefused int64 // bytes of cache that could not be locked
	DenseRefused int64
}

// Observe adds what earlier runs taught to the facts: the engine's cost per
// lookup and per layer, the cost of a graph beside its bytes, and what locks
// were refused. The newest run comes last.
func (p *Profile) Observe(runs []Observation) {
	if len(runs) == 0 {
		return
	}
	how := func(n int) string { return fmt.Sprintf("median over %d earlier runs of this build on this machine", n) }
	var lookups []float64
	for _, r := range runs {
		if r.ManageSPerLookup > 0 {
			lookups = append(lookups, r.ManageSPerLookup)
		}
	}
	if m, spread, ok := middle(lookups); ok {
		p.Overheads.PerLookup = MeasuredFact(m, spread, how(len(lookups)))
	}
	p.observeGraph(runs, how)
	p.observeLayers(runs, how)
	last := runs[len(runs)-1]
	if last.Config.MoeStream && last.Config.CachePin {
		p.Locks.CacheRefused = MeasuredFact(last.CacheRefused, 0, "counted by the last run that locked its cache")
	}
	if last.Config.MoeStream && last.Config.DenseWeights == "pinned" {
		p.Locks.DenseRefused = MeasuredFact(last.DenseRefused, 0, "counted by the last run that pinned its weights")
	}
}

// observeGraph takes what resident runs needed beside reading their weights as
// the cost of the graph itself.
func (p *Profile) observeGraph(runs []Observation, how func(int) string) {
	var over []float64
	for _, r := range runs {
		if r.Config.MoeStream || r.DecodeSPerToken <= 0 {
			continue
		}
		st := p.pricing(r.Config)
		if t := st.residentTerms(st.residentRate()); t.known {
			over = append(over, max(0, r.DecodeSPerToken-t.dense-t.experts))
		}
	}
	if m, spread, ok := middle(over); ok {
		p.Overheads.PerNode = MeasuredFact(m, spread, how(len(over))+": time beside the weights' bytes, as one node")
		p.Overheads.Nodes = DerivedFact(int64(1), "the graph counted whole")
	}
}

// observeLayers takes what streamed runs needed beside all priced terms as the
// engine's cost per layer.
func (p *Profile) observeLayers(runs []Observation, how func(int) string) {
	p.Overheads.PerLayer = Fact[float64]{Reason: p.Overheads.PerLayer.Reason, Owed: p.Overheads.PerLayer.Owed, Provenance: p.Overheads.PerLayer.Provenance}
	var over []float64
	for _, r := range runs {
		if !r.Config.MoeStream || r.DecodeSPerToken <= 0 || r.Config.CacheMB < 0 {
			continue
		}
		st := p.pricing(r.Config)
		packed := st.repacked()
		t := st.streamTerms(1-min(1, max(0, r.ByteHitRate)), st.weightRate(packed), packed)
		if t.known && st.m.layers > 0 {
			over = append(over, max(0, r.DecodeSPerToken-t.total())/float64(st.m.layers))
		}
	}
	if m, spread, ok := middle(over); ok {
		p.Overheads.PerLayer = MeasuredFact(m, spread, how(len(over))+": time beside every priced term")
	}
}

// pricing is a planning state good for pricing a configuration that ran.
func (p *Profile) pricing(cfg config.Config) *planning {
	st := &planning{p: p, pol: DefaultPolicy(), cfg: cfg, def: config.Default(), pins: Pins{}, stream: cfg.MoeStream}
	st.m = viewModel(&p.Model, cfg.NExpertUsed, max(p.Storage.Align.Or(0), 4096))
	st.dense.held = st.m.dense
	return st
}

// middle is the median and the spread around it.
func middle(v []float64) (median, spread float64, ok bool) {
	if len(v) == 0 {
		return 0, 0, false
	}
	slices.SortFunc(v, cmp.Compare[float64])
	median = v[len(v)/2]
	if len(v)%2 == 0 {
		median = (v[len(v)/2-1] + median) / 2
	}
	if median > 0 {
		spread = (v[len(v)-1] - v[0]) / median
	}
	return median, min(spread, 2), true
}
