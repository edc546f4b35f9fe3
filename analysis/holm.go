package analysis

import (
	"math"
	"slices"
)

// Holm returns the p-values adjusted by Holm's step-down method (1979) for a
// family of m comparisons. m is fixed before the first run: comparisons that
// could not be made in the end still count, as if their p were 1.
func Holm(p []float64, m int) []float64 {
	m = max(m, len(p))
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	adjusted := make([]float64, len(p))
	var highest float64
	for rank, i := range order {
		highest = max(highest, min(1, float64(m-rank)*p[i]))
		adjusted[i] = highest
	}
	return adjusted
}

// DisplayLevel is the confidence level at which a family of m intervals is
// shown so that all of them hold together with 1-alpha (Bonferroni).
func DisplayLevel(alpha float64, m int) float64 { return 1 - alpha/float64(max(m, 1)) }

// SmallestP is the smallest two-sided p-value that n pairs can give.
func SmallestP(n int) float64 { return math.Min(1, math.Ldexp(1, 1-n)) }

// Feasible says whether n pairs can decide each of m comparisons at a family
// error of alpha at all.
func Feasible(n, m int, alpha float64) bool {
	return SmallestP(n) <= alpha/float64(max(m, 1))
}

// MinPairs is the fewest pairs that can decide m comparisons at alpha.
func MinPairs(m int, alpha float64) int {
	n := 1
	for !Feasible(n, m, alpha) {
		n++
	}
	return n
}

// MaxFamily is the most comparisons that n pairs can decide at alpha.
func MaxFamily(n int, alpha float64) int {
	return int(math.Floor(alpha/SmallestP(n) + 1e-9))
}
