package planner

import (
	"fmt"
	"math"
)

// readAheadShare is the share of a layer's experts from which the engine reads
// a whole layer before it is routed to.
const readAheadShare = 0.9

// PrefillTerms are the parts of a predicted prompt, so that it can be priced
// for the length the prompt turns out to have: a short one reads nearly as much
// as a long one, and so computes far fewer tokens a second.
type PrefillTerms struct {
	TokenS   float64 `json:"token_s"`   // computing one token of a wide pass
	ExpertsS float64 `json:"experts_s"` // of that, the picked experts
	ReadsS   float64 `json:"reads_s"`   // reading every routed expert once
	Layers   float64 `json:"layers"`    // with routed experts
	Experts  float64 `json:"experts"`
	Used     float64 `json:"used"`
	Parts    float64 `json:"parts"` // projections that reads and compute alternate over
	Slots    int     `json:"slots"` // prefill slots; 0: nothing is streamed
	Overlap  bool    `json:"overlap"`
	Width    int64   `json:"width"` // tokens a pass
	Scale    float64 `json:"scale"` // time of earlier prompts, of their priced time
}

// Seconds is the predicted time of a prompt of that many tokens.
func (t *PrefillTerms) Seconds(tokens int64) float64 {
	width := max(1, t.Width)
	sum := float64(tokens/width) * t.pass(float64(width))
	if rest := tokens % width; rest > 0 {
		sum += t.pass(float64(rest))
	}
	return sum * t.Scale
}

// picked is the share of a layer's experts that a pass needs, if routing is even.
func (t *PrefillTerms) picked(tokens float64) float64 {
	if t.Experts <= 0 || t.Used >= t.Experts {
		return 1
	}
	return 1 - math.Pow(1-t.Used/t.Experts, tokens)
}

// pass is one graph. With two slots and nearly every expert picked, a layer is
// read while the one before it computes, all but the first; otherwise a layer's
// reads begin when it has been routed and overlap its own matmuls, if they may.
func (t *PrefillTerms) pass(tokens float64) float64 {
	compute := tokens * t.TokenS
	if t.Slots == 0 {
		return compute
	}
	share, layers := t.picked(tokens), max(1, t.Layers)
	if t.Slots > 1 && share >= readAheadShare {
		layer := t.ReadsS / layers
		return layer + (layers-1)*max(layer, compute/layers) + compute/layers
	}
	reads, experts := share*t.ReadsS, tokens*t.ExpertsS
	if !t.Overlap {
		return compute + reads
	}
	n := max(1, t.Parts)
	return compute - experts + max(reads+experts/n, reads/n+experts)
}

// PrefillAt is the predicted rate of a prompt of that many tokens, tokens per
// second; false where no price was given.
func (p *Prediction) PrefillAt(tokens int64) (Estimate, bool) {
	e := p.PrefillTokensPerS
	if p.PrefillTerms == nil || !e.Known || tokens <= 0 || e.Point <= 0 {
		return Estimate{}, false
	}
	rate := float64(tokens) / p.PrefillTerms.Seconds(tokens)
	return Estimate{
		Known: true, Point: rate, Lo: rate * e.Lo / e.Point, Hi: rate * e.Hi / e.Point,
		Basis: fmt.Sprintf("%d tokens in passes of %d", tokens, p.PrefillTerms.Width),
	}, true
}

// predictPrefill prices passes of the graph's full width: compute at the wide
// rate and, under streaming, reads of the experts a pass picks, which is nearly
// all of them.
func (st *planning) predictPrefill(pr *Prediction, packed bool) Estimate {
	wide := st.p.Host.Wide.Or(0)
	if packed && st.p.Host.WideRepack.OK() {
		wide = st.p.Host.WideRepack.Value
	}
	if st.device.dev != nil && st.device.dev.Wide.Or(0) > 0 {
		wide = st.device.dev.Wide.Value
	}
	if wide <= 0 {
		return Estimate{Basis: "no price: owed the matmul 128 tokens wide"}
	}
	t := &PrefillTerms{
		TokenS: float64(st.m.read+st.m.cycle) / wide, ExpertsS: float64(st.m.cycle) / wide,
		Layers: float64(st.m.layers), Experts: float64(st.m.experts), Used: float64(min(st.m.used, st.m.experts)),
		Parts: float64(st.m.projections()), Overlap: st.cfg.Overlap, Width: st.width(), Scale: 1,
	}
	if v, ok := st.p.Overheads.Prefill.Get(); ok && v > 0 {
		t.Scale = v
	}
	if st.stream {
		r, ok := st.bulkRate()
		if !ok {
			return Estimate{Basis: "no price: owed the drive's read rate"}
		}
		t.Slots = max(1, st.cfg.PrefillSlots)
		t.ReadsS = st.readsScale() * float64(st.m.routed) / r
		if packed {
			t.ReadsS += st.m.repackable() * float64(st.m.routed) / max(1, st.p.Overheads.RepackRate.Or(math.Inf(1)))
		}
	}
	pr.PrefillTerms = t
	return st.prefillEstimate(t)
}

// prefillEstimate is the rate of a full-width pass.
func (st *planning) prefillEstimate(t *PrefillTerms) Estimate {
	total := t.Seconds(t.Width)
	e := Estimate{Known: true, Point: float64(t.Width) / total}
	e.Basis = fmt.Sprintf("a pass of %d tokens: compute %s", t.Width, seconds(float64(t.Width)*t.TokenS))
	if t.Slots > 0 {
		e.Basis += fmt.Sprintf(", reading %s of the experts %s", percent(t.picked(float64(t.Width))), seconds(t.picked(float64(t.Width))*t.ReadsS))
	}
	e.Basis += fmt.Sprintf(", in all %s; a prompt of another length is priced by what it reads", seconds(total))
	spread := max(st.p.Host.Wide.Spread/2, 0.25)
	if r := st.p.Overheads.Prefill; r.OK() {
		e.Basis += fmt.Sprintf("; earlier prompts took %.2f times their price", r.Value)
		spread = max(r.Spread/2, st.pol.MinSpread)
	}
	e.Lo, e.Hi = e.Point*max(0, 1-spread), e.Point*(1+spread)
	return e
}

// bulkRate is the drive's rate for many slices at once.
func (st *planning) bulkRate() (float64, bool) {
	if b, ok := st.p.Storage.Buffered.Get(); ok && !st.cfg.ODirect && b > 0 {
		return b, true
	}
	r, _, ok := rateAt(st.laneRates(), st.cfg.IOThreads)
	return r, ok
}
