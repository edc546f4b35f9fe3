package analysis

import (
	"math"
	"slices"
	"sort"
)

// Interval is a confidence interval with the level it attains, which for small
// samples is never the round figure that was asked for.
type Interval struct {
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	Level float64 `json:"level"` // attained, a fraction
	Cut   int     `json:"cut"`   // rank of the Walsh average at each end
}

// Contains says whether x lies in the interval, ends included.
func (c Interval) Contains(x float64) bool { return c.Lo <= x && x <= c.Hi }

// Cut returns the largest k such that the interval from the k-th smallest to
// the k-th largest Walsh average of n differences attains at least level, and
// the level it attains. When even the whole range (k = 1) attains less, it
// returns that with ok false: five pairs cannot give 95 %.
func Cut(n int, level float64) (k int, attained float64, ok bool) {
	if n < 1 {
		return 0, 0, false
	}
	attained = 1 - 2*TailProbability(n, 0)
	if attained < level {
		return 1, max(attained, 0), false
	}
	// The level falls with k: the first cut that attains too little is one too far.
	k = sort.Search(n*(n+1)/4-1, func(i int) bool { return 1-2*TailProbability(n, i+1) < level }) + 1
	return k, 1 - 2*TailProbability(n, k-1), true
}

// SignedRankInterval inverts the signed-rank test (Hollander and Wolfe): the
// shortest interval between two Walsh averages that attains the level, or the
// whole range with ok false when there are too few differences for it.
func SignedRankInterval(d []float64, level float64) (c Interval, ok bool) {
	if len(d) == 0 {
		return Interval{Lo: math.Inf(-1), Hi: math.Inf(1), Level: 1}, false
	}
	k, attained, ok := Cut(len(d), level)
	if len(d) <= maxListed {
		w := WalshAverages(d)
		return Interval{Lo: w[k-1], Hi: w[len(w)-k], Level: attained, Cut: k}, ok
	}
	s, all := slices.Sorted(slices.Values(d)), len(d)*(len(d)+1)/2
	return Interval{Lo: walshAt(s, k), Hi: walshAt(s, all-k+1), Level: attained, Cut: k}, ok
}

// Signs counts the differences above, below and at 0.
type Signs struct {
	Positive int `json:"positive"`
	Negative int `json:"negative"`
	Zero     int `json:"zero"`
}

// CountSigns of d.
func CountSigns(d []float64) Signs {
	var s Signs
	for _, v := range d {
		switch {
		case v > 0:
			s.Positive++
		case v < 0:
			s.Negative++
		default:
			s.Zero++
		}
	}
	return s
}

// P is the exact two-sided p-value of the sign test.
func (s Signs) P() float64 {
	n := s.Positive + s.Negative
	if n == 0 {
		return 1
	}
	k := min(s.Positive, s.Negative)
	term := math.Pow(0.5, float64(n)) // C(n,0) / 2^n
	var sum float64
	for i := 0; i <= k; i++ {
		sum += term
		term *= float64(n-i) / float64(i+1)
	}
	return min(1, 2*sum)
}
