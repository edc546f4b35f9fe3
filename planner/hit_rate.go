package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// cliffPolicies are the cache policies that evict, below one token cycle, what
// the same token still needs, and so return nothing at all.
var cliffPolicies = map[string]bool{"lru": true, "layer-lru": true}

// hasCliff reports whether the cache policy in use has a token-cycle floor.
func (st *planning) hasCliff() bool { return cliffPolicies[st.cfg.CachePolicy] }

// hitRate predicts the share of decode lookups a cache of that size serves,
// and the share of bytes with it. The best source wins: a curve measured on this
// model's routing, a fitted coefficient, what published routings showed.
func (st *planning) hitRate(cache int64) Estimate {
	if cache <= 0 || st.m.routed <= 0 || (st.hasCliff() && cache < st.m.cycle) {
		return Estimate{Known: true, Basis: "no cache"}
	}
	if cache >= st.m.whole() {
		return Estimate{Known: true, Point: 1, Lo: 1, Hi: 1, Basis: "every expert is held"}
	}
	cache = int64(float64(cache) / st.m.pad) // what of it is expert bytes
	if c, spread, ok := st.curve(); ok {
		h, half := interpolate(c, cache)
		half = max(half, spread)
		basis := "measured curve of this model's routing"
		if how := st.p.Hits.Curves.Reason; how != "" {
			basis += ": " + how
		}
		return Estimate{Known: true, Point: h, Lo: max(0, h-half), Hi: min(1, h+half), Basis: basis}
	}
	f := float64(cache) / float64(st.m.routed)
	if fit, ok := st.hitFit(); ok {
		return st.fittedHits(fit, f)
	}
	return st.typicalHits(f)
}

// typicalHits is what to expect of a model whose routing nobody looked at:
// published routings repeat themselves, and a cache returns far more than its
// share. The interval reaches from no repetition at all to the most seen.
func (st *planning) typicalHits(f float64) Estimate {
	at := func(a float64) float64 { return 1 - math.Exp(-a*f) }
	return Estimate{
		Known: true, Point: at(st.pol.HitTypical), Lo: min(st.pol.HitSlope*f, at(st.pol.HitTypical)), Hi: at(st.pol.HitMost),
		Basis: fmt.Sprintf("this model's routing was never looked at; published ones: 1 - exp(-%.3g x the share of experts held) [policy]", st.pol.HitTypical),
	}
}

// creditedHits is the hit rate a decision may count on. What other models
// showed says what to expect and justifies no move: without a measurement of
// this model's routing a cache is credited with its share of the experts alone.
func (st *planning) creditedHits(cache int64) float64 {
	h := st.hitRate(cache).Point
	if h <= 0 || h >= 1 || st.hitsMeasured() {
		return h
	}
	return min(h, st.pol.HitSlope*float64(cache)/st.m.pad/float64(st.m.routed))
}

// hitsMeasured reports whether earlier runs of this model or its routing say
// what a cache returns.
func (st *planning) hitsMeasured() bool {
	if _, _, ok := st.curve(); ok {
		return true
	}
	_, ok := st.hitFit()
	return ok
}

// hitFit is the fitted coefficient of the policy in use.
func (st *planning) hitFit() (HitFit, bool) {
	fit, ok := st.p.Hits.Fit.Get()
	return fit, ok && fit.K > 0 && (fit.Policy == "" || fit.Policy == st.cfg.CachePolicy)
}

// fittedHits reads the fitted shape. Outside the band it was fitted in the
// interval opens down to the default's.
func (st *planning) fittedHits(fit HitFit, f float64) Estimate {
	at := func(k float64) float64 { return min(1, k*f) }
	basis := fmt.Sprintf("fitted: %.2f x the share of experts held", fit.K)
	if fit.Shape == ShapeSaturating {
		at = func(k float64) float64 { return 1 - math.Exp(-k*f) }
		basis = fmt.Sprintf("fitted: 1 - exp(-%.2f x the share of experts held)", fit.K)
	}
	if how := st.p.Hits.Fit.Reason; how != "" {
		basis += " (" + how + ")"
	}
	e := Estimate{Known: true, Point: at(fit.K), Lo: at(min(fit.K, fit.Lo)), Hi: at(max(fit.K, fit.Hi)), Basis: basis}
	if fit.ToF > 0 && (f < fit.FromF || f > fit.ToF) {
		e.Basis += fmt.Sprintf(", outside the band %.2f to %.2f it was fitted in", fit.FromF, fit.ToF)
		e.Lo = min(e.Lo, st.pol.HitSlope*f)
	}
	return e
}

// hitProvenance says how good the hit rate's source is.
func (st *planning) hitProvenance() Provenance {
	if st.cache.bytes == 0 || st.cache.bytes >= st.m.whole() {
		return Derived
	}
	if st.hitsMeasured() {
		return Measured
	}
	return PolicyP
}

// curve is the measured curve of the policy in use.
func (st *planning) curve() ([]HitPoint, float64, bool) {
	for _, c := range st.p.Hits.Curves.Value {
		if c.Policy == st.cfg.CachePolicy && len(c.Points) > 0 {
			return c.Points, st.p.Hits.Curves.Spread, true
		}
	}
	return nil, 0, false
}

// interpolate reads a curve and its half-width between its points, from nothing
// at zero bytes. A curve that dips is read as if it did not: more cache is never
// worse here.
func interpolate(points []HitPoint, cache int64) (hit, half float64) {
	pts := slices.Clone(points)
	slices.SortFunc(pts, func(a, b HitPoint) int { return cmp.Compare(a.Bytes, b.Bytes) })
	var prev HitPoint
	for _, p := range pts {
		v := p.Hit
		if p.ByteHit > 0 {
			v = p.ByteHit
		}
		v = max(prev.Hit, min(1, max(0, v)))
		if cache <= p.Bytes {
			if p.Bytes == prev.Bytes {
				return v, p.Half
			}
			t := float64(cache-prev.Bytes) / float64(p.Bytes-prev.Bytes)
			return prev.Hit + (v-prev.Hit)*t, max(prev.Half, p.Half)
		}
		prev = HitPoint{Bytes: p.Bytes, Hit: v, Half: p.Half}
	}
	return prev.Hit, prev.Half
}
