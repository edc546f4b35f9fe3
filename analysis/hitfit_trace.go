package analysis

import (
	"math"
	"slices"
)

// traceBudgetsMiB are the budgets a trace is fitted at, where they apply.
var traceBudgetsMiB = []int64{1000, 1500, 2000, 2500, 3000, 4000, 6000, 8000}

// minTraceBudgets is how many of them must apply.
const minTraceBudgets = 4

// FitBudgets returns the budgets in bytes at which a trace's curve is fitted:
// 1000 to 8000 MiB, those at or above one token cycle (below it global LRU has
// nothing) and under the whole expert set. A model too small for them gets
// eight budgets at equal ratios from one cycle to half of its experts.
func FitBudgets(r *Routing) []int64 {
	cycle, all := r.TokenCycle(), r.RoutedBytes()
	var out []int64
	for _, mb := range traceBudgetsMiB {
		if b := mb << 20; b >= cycle && b < all {
			out = append(out, b)
		}
	}
	if len(out) >= minTraceBudgets {
		return out
	}
	out = out[:0]
	lo, hi := float64(cycle), float64(all)/2
	if hi < lo {
		hi = float64(all)
	}
	for _, x := range geometric(lo, hi, len(traceBudgetsMiB)) {
		out = append(out, int64(x))
	}
	return slices.Compact(out)
}

// TraceHits is the LRU curve of a trace as points for FitHits, and the whole
// curve as H2. Points at which nothing hit are kept: they are data.
func TraceHits(r *Routing, budgets []int64, cluster string) (points []HitPoint, curve func(f float64) float64) {
	c := NewLRUCurve(r)
	all := float64(r.RoutedBytes())
	for _, b := range budgets {
		points = append(points, HitPoint{F: float64(b) / all, H: c.At(b).Decode.HitRate(), Weight: 1, Cluster: cluster})
	}
	return points, func(f float64) float64 { return c.At(int64(f * all)).Decode.HitRate() }
}

// geometric returns n values from lo to hi at equal ratios.
func geometric(lo, hi float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = lo * math.Pow(hi/lo, float64(i)/float64(n-1))
	}
	return out
}
