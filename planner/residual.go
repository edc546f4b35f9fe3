package planner

import (
	"fmt"
	"math"
)

// observeResidual measures how far runs lay from a price that knows their hits
// and everything they taught. One run says little of that, so the estimate
// starts as if a few runs had shown the probe's own spread (a scaled inverse
// chi-square prior; Gelman et al., Bayesian Data Analysis, 2.6), and the interval
// is Student's: of the next run, at 90 %.
func (p *Profile) observeResidual(runs []Observation) {
	p.Overheads.Residual = unlearnt(p.Overheads.Residual)
	var sum float64
	n := 0
	for _, r := range runs {
		if v, ok := p.priced(r); ok {
			e := math.Log(r.DecodeSPerToken / v)
			sum += e * e
			n++
		}
	}
	if n == 0 {
		return
	}
	pol := DefaultPolicy()
	prior := max(p.probeSpread()/2, pol.MinSpread)
	df := pol.PriorRuns + float64(max(0, n-1)) // the median of the runs took one
	variance := (pol.PriorRuns*prior*prior + sum) / df
	half := studentT90(df) * math.Sqrt(variance*(1+1/float64(n)))
	p.Overheads.Residual = MeasuredFact(half, 0, fmt.Sprintf("of %d earlier runs, their hits given, and a prior of %.0f runs at %s", n, pol.PriorRuns, percent(prior)))
}

// priced is what a run would be predicted to take with its hits given.
func (p *Profile) priced(r Observation) (float64, bool) {
	if r.DecodeSPerToken <= 0 {
		return 0, false
	}
	if r.Config.MoeStream {
		_, t := p.streamed(r)
		return t.total(), t.known && t.total() > 0
	}
	st := p.pricing(r.Config)
	t := st.residentTerms()
	return t.total(), t.known && t.total() > 0
}

// probeSpread is the wider of what the drive and the matmul varied by.
func (p *Profile) probeSpread() float64 {
	return min(1, max(p.Storage.Curve.Spread, p.Host.Narrow.Spread))
}

// studentT90 is the two-sided 90 % point of Student's t, from its tables,
// between whose rows 1/df is interpolated.
func studentT90(df float64) float64 {
	rows := [][2]float64{{1, 6.314}, {2, 2.920}, {3, 2.353}, {4, 2.132}, {5, 2.015}, {6, 1.943}, {8, 1.860}, {10, 1.812}, {15, 1.753}, {20, 1.725}, {30, 1.697}, {60, 1.671}, {120, 1.658}}
	if df <= rows[0][0] {
		return rows[0][1]
	}
	for i := 1; i < len(rows); i++ {
		a, b := rows[i-1], rows[i]
		if df <= b[0] {
			t := (1/a[0] - 1/df) / (1/a[0] - 1/b[0])
			return a[1] + t*(b[1]-a[1])
		}
	}
	return 1.645
}
