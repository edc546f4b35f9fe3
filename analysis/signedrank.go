package analysis

import (
	"math"
	"slices"
)

// maxExactPairs bounds the exact null distribution: beyond it the counts of
// sign patterns no longer fit a float64 exactly and nobody runs that many.
const maxExactPairs = 50

// WalshAverages returns the n(n+1)/2 averages of d taken two at a time, each
// value with itself included, in ascending order.
func WalshAverages(d []float64) []float64 {
	w := make([]float64, 0, len(d)*(len(d)+1)/2)
	for i := range d {
		for j := i; j < len(d); j++ {
			w = append(w, (d[i]+d[j])/2)
		}
	}
	slices.Sort(w)
	return w
}

// HodgesLehmann is the median of the Walsh averages, the estimate that goes
// with the signed-rank test (Hodges and Lehmann 1963). NaN when d is empty.
func HodgesLehmann(d []float64) float64 { return medianSorted(WalshAverages(d)) }

// Median of x; NaN when x is empty. x is left as it was.
func Median(x []float64) float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	return medianSorted(s)
}

func medianSorted(s []float64) float64 {
	n := len(s)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// signedRankCounts returns how many of the 2^n sign patterns of the given
// ranks (whole numbers) have each possible sum of positive ranks.
func signedRankCounts(ranks []int) []float64 {
	counts := []float64{1}
	for _, r := range ranks {
		next := make([]float64, len(counts)+r)
		for w, c := range counts {
			next[w] += c
			next[w+r] += c
		}
		counts = next
	}
	return counts
}

// plainRanks are 1..n: no ties.
func plainRanks(n int) []int {
	r := make([]int, n)
	for i := range r {
		r[i] = i + 1
	}
	return r
}

// TailProbability is P(W <= w) for the signed-rank statistic of n untied
// differences whose signs are fair coins.
func TailProbability(n, w int) float64 {
	if n > maxExactPairs {
		mean := float64(n) * float64(n+1) / 4
		sd := math.Sqrt(mean * float64(2*n+1) / 6)
		return 0.5 * math.Erfc(-(float64(w)+0.5-mean)/sd/math.Sqrt2)
	}
	return tail(signedRankCounts(plainRanks(n)), w)
}

func tail(counts []float64, w int) float64 {
	var below, all float64
	for i, c := range counts {
		all += c
		if i <= w {
			below += c
		}
	}
	return below / all
}

// SignedRankP is the exact two-sided p-value of Wilcoxon's signed-rank test
// that d is symmetric about 0. Zeros are left out, ties share their mid-rank,
// and the null distribution is that of the mid-ranks themselves. It is 1 when
// nothing differs from 0.
func SignedRankP(d []float64) float64 {
	ranks, positive := doubledRanks(d)
	if len(ranks) == 0 {
		return 1
	}
	if len(ranks) > maxExactPairs {
		return normalP(ranks, positive)
	}
	counts := signedRankCounts(ranks)
	w := min(positive, len(counts)-1-positive)
	return min(1, 2*tail(counts, w))
}

func normalP(ranks []int, positive int) float64 {
	var mean, variance float64
	for _, r := range ranks {
		mean += float64(r) / 2
		variance += float64(r) * float64(r) / 4
	}
	z := (math.Abs(float64(positive)-mean) - 1) / math.Sqrt(variance)
	return min(1, math.Erfc(max(z, 0)/math.Sqrt2))
}

// doubledRanks returns twice the mid-rank of |d| for every d that is not 0
// (doubled, so that they are whole) and the sum of the positive ones.
func doubledRanks(d []float64) (ranks []int, positive int) {
	var x []float64
	for _, v := range d {
		if v != 0 && !math.IsNaN(v) {
			x = append(x, v)
		}
	}
	slices.SortFunc(x, func(a, b float64) int {
		switch a, b := math.Abs(a), math.Abs(b); {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	ranks = make([]int, len(x))
	for i := 0; i < len(x); {
		j := i
		for j < len(x) && math.Abs(x[j]) == math.Abs(x[i]) {
			j++
		}
		for k := i; k < j; k++ {
			ranks[k] = i + 1 + j // twice the mean of i+1..j
		}
		i = j
	}
	for i, v := range x {
		if v > 0 {
			positive += ranks[i]
		}
	}
	return ranks, positive
}
