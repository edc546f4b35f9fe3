package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/bmoe/bmoe/planner/config"
)

// Observation is what one finished run measured, as far as a later plan can
// learn from it: a run of this model, on this machine, by this build.
type Observation struct {
	Config           config.Config
	DecodeSPerToken  float64
	WaitSPerToken    float64 // waited for reads; counted only with Split
	ManageSPerToken  float64
	Split            bool    // the engine split its time
	ManageSPerLookup float64 // 0: not counted
	ByteHitRate      float64 // of decode, share of bytes that were not read
	Tokens           int64   // decoded
	PrefillTokensPerS,
	PromptTokens float64
	CacheRefused int64 // bytes of cache that could not be locked
	DenseRefused int64
	Device       string // asked for prompts
	DeviceFailed bool   // which were computed without it
	DeviceWhy    string
}

// waitShare is the share of a token that reads must have been waited for, to
// say anything of their speed.
const waitShare = 0.05

// Observe adds what earlier runs taught to the facts: the engine's cost per
// lookup and per layer, the time of reads under compute, the cost of a resident
// graph beside its bytes, how long prompts take, what locks were refused, and
// how far the runs lay from a price so corrected. The newest run comes last.
func (p *Profile) Observe(runs []Observation) {
	if len(runs) == 0 {
		return
	}
	var lookups []float64
	for _, r := range runs {
		if r.ManageSPerLookup > 0 {
			lookups = append(lookups, r.ManageSPerLookup)
		}
	}
	learnt(&p.Overheads.PerLookup, lookups, "looking up, choosing victims, remapping")
	p.observeReads(runs)
	p.observeLayers(runs)
	p.observeResident(runs)
	p.observePrefill(runs)
	p.observeResidual(runs)
	p.observeDevices(runs)
	last := runs[len(runs)-1]
	if last.Config.MoeStream && last.Config.CachePin {
		p.Locks.CacheRefused = MeasuredFact(last.CacheRefused, 0, "counted by the last run that locked its cache")
	}
	if last.Config.MoeStream && last.Config.DenseWeights == "pinned" {
		p.Locks.DenseRefused = MeasuredFact(last.DenseRefused, 0, "counted by the last run that pinned its weights")
	}
}

// learnt gives a fact the middle of what runs measured.
func learnt(f *Fact[float64], values []float64, what string) {
	n := len(values)
	if m, spread, ok := middle(values); ok {
		*f = MeasuredFact(m, spread, fmt.Sprintf("median over %d earlier runs of this build on this machine: %s", n, what))
	}
}

// streamed prices what a streamed run would have taken at the hits it had.
func (p *Profile) streamed(r Observation) (*planning, terms) {
	st := p.pricing(r.Config)
	if !r.Config.MoeStream || r.DecodeSPerToken <= 0 || r.Config.CacheMB < 0 || st.m.layers == 0 {
		return st, terms{}
	}
	packed := st.repacked()
	t := st.streamTerms(1-min(1, max(0, r.ByteHitRate)), st.weightRate(packed), packed)
	t.fill = st.fillSeconds(int64(r.Config.CacheMB)*mib, r.Tokens)
	return st, t
}

// readsSample is one run's waiting, as observeReads explains it.
type readsSample struct {
	t       terms
	wait    float64 // measured, seconds a token
	of      float64 // seconds a token in all
	filling float64 // bytes a token of cache that was filled for the first time
}

// observeReads explains the time runs waited for reads by two figures: a factor
// on the probe's read times, and seconds per byte of cache that is filled for
// the first time, whose pages are new and whose experts the drive has not served
// before. The second needs runs with different caches; it is 0 without them.
func (p *Profile) observeReads(runs []Observation) {
	o := &p.Overheads
	o.ReadsScale, o.Fill = unlearnt(o.ReadsScale), unlearnt(o.Fill)
	var list []readsSample
	sizes := map[int]bool{}
	for _, r := range runs {
		st, t := p.streamed(r)
		if !t.known || !r.Split || r.WaitSPerToken < waitShare*r.DecodeSPerToken || t.miss <= 0 {
			continue
		}
		list = append(list, readsSample{t, r.WaitSPerToken, r.DecodeSPerToken, st.filling(int64(r.Config.CacheMB)*mib, r.Tokens)})
		sizes[r.Config.CacheMB] = true
	}
	if len(list) == 0 {
		return
	}
	how := fmt.Sprintf("least squares over %d earlier runs of this build on this machine", len(list))
	if len(sizes) < 2 {
		var scales []float64
		for _, s := range list {
			scales = append(scales, s.t.scaleFor(s.wait))
		}
		learnt(&o.ReadsScale, scales, "time of reads under compute, of the probe's time")
		return
	}
	scale, fill := explainWaits(list)
	o.ReadsScale = MeasuredFact(scale, 0, how+": time of reads under compute, of the probe's time")
	o.Fill = MeasuredFact(fill, 0, how+": time beside it per byte of cache filled for the first time")
}

// explainWaits finds the factor and the seconds per byte with the least squares
// of what they leave, as shares of a token. For each factor the best seconds per
// byte follow in closed form.
func explainWaits(list []readsSample) (scale, fill float64) {
	best := math.Inf(1)
	const steps = 240
	for i := range steps + 1 {
		s := math.Exp2(-4 + 8*float64(i)/steps) // 1/16 to 16
		rest := make([]float64, len(list))
		var xy, xx, sum float64
		for n, r := range list {
			r.t.ioScale = s
			rest[n] = (r.wait - r.t.wait()) / r.of
			x := r.filling / r.of
			xy, xx = xy+x*rest[n], xx+x*x
		}
		f := 0.0
		if xx > 0 {
			f = max(0, xy/xx)
		}
		for n, r := range list {
			e := rest[n] - f*r.filling/r.of
			sum += e * e
		}
		if sum < best {
			best, scale, fill = sum, s, f
		}
	}
	return scale, fill
}

// scaleFor is the factor on the reads' times at which the wait is that.
func (t terms) scaleFor(wait float64) float64 {
	lo, hi := 1.0/16, 16.0
	for range 60 {
		t.ioScale = math.Sqrt(lo * hi)
		if t.wait() < wait {
			lo = t.ioScale
		} else {
			hi = t.ioScale
		}
	}
	return t.ioScale
}

// observeLayers takes what streamed runs needed beside all priced terms as the
// engine's cost per layer. It is negative where the probe's matmul was slower
// than the run's.
func (p *Profile) observeLayers(runs []Observation) {
	p.Overheads.PerLayer = unlearnt(p.Overheads.PerLayer)
	var over []float64
	for _, r := range runs {
		st, t := p.streamed(r)
		if !t.known {
			continue
		}
		left := r.DecodeSPerToken - t.total()
		if r.Split { // the reads' part is corrected by itself
			left = r.DecodeSPerToken - r.WaitSPerToken - (t.total() - t.wait() - t.fill)
		}
		over = append(over, left/float64(st.m.layers))
	}
	learnt(&p.Overheads.PerLayer, over, "time beside every priced term")
}

// observeResident takes what resident runs needed beside their priced terms as
// the cost of the graph.
func (p *Profile) observeResident(runs []Observation) {
	p.Overheads.Resident = unlearnt(p.Overheads.Resident)
	var over []float64
	for _, r := range runs {
		if r.Config.MoeStream || r.DecodeSPerToken <= 0 {
			continue
		}
		st := p.pricing(r.Config)
		if t := st.residentTerms(); t.known {
			over = append(over, r.DecodeSPerToken-t.total())
		}
	}
	learnt(&p.Overheads.Resident, over, "a resident token's time beside every priced term")
}

// observePrefill takes how long prompts took against their price.
func (p *Profile) observePrefill(runs []Observation) {
	p.Overheads.Prefill = unlearnt(p.Overheads.Prefill)
	var ratios []float64
	for _, r := range runs {
		if r.PromptTokens <= 0 || r.PrefillTokensPerS <= 0 {
			continue
		}
		st := p.pricing(r.Config)
		var pr Prediction
		pr.PrefillTokensPerS = st.predictPrefill(&pr, st.repacked())
		if e, ok := pr.PrefillAt(int64(r.PromptTokens)); ok {
			ratios = append(ratios, e.Point/r.PrefillTokensPerS)
		}
	}
	learnt(&p.Overheads.Prefill, ratios, "time of a prompt, of its priced time")
}

// observeDevices notes which devices the last run that asked for them could not
// set up or lost: the memory a driver states free is no promise.
func (p *Profile) observeDevices(runs []Observation) {
	for i := range p.Devices {
		d := &p.Devices[i]
		for _, r := range runs {
			switch {
			case r.Device != d.Name:
			case r.DeviceFailed:
				d.SetsUp = MeasuredFact(false, 0, r.DeviceWhy)
			default:
				d.SetsUp = MeasuredFact(true, 0, "an earlier run computed its prompt there")
			}
		}
	}
}

// unlearnt forgets a value but not why it may be missing.
func unlearnt(f Fact[float64]) Fact[float64] {
	return Fact[float64]{Reason: f.Reason, Owed: f.Owed, Provenance: Unprobed}
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
	if median != 0 {
		spread = (v[len(v)-1] - v[0]) / math.Abs(median)
	}
	return median, min(spread, 2), true
}
