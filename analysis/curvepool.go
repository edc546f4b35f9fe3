package analysis

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/bmoe/bmoe/results/record"
)

// PooledHit is the hit rate at one cache size that several routings of a model
// gave together, with the half-width of an interval for the next routing.
type PooledHit struct {
	Bytes int64
	Hit   float64
	Half  float64
}

// priorRoutings is how many routings the spread assumed beforehand counts as.
const priorRoutings = 3

// PoolCurves puts hit curves of one policy on one model together, at the sizes
// of their bins, at most limit of them. perToken is the lookups of one decoded
// token.
//
// The interval is of a routing not seen yet, at the level given. Before there is
// more than one routing its spread is binomial, with each token as one trial:
// lookups of one token succeed and fail together. That guess counts as a few
// routings against the spread between the curves themselves (a scaled inverse
// chi-square prior; Gelman et al., Bayesian Data Analysis, 2.6), and the interval
// is Student's for a new observation.
func PoolCurves(list []record.Histogram, perToken float64, limit int, level float64) []PooledHit {
	var sizes []int64
	var lookups float64
	used := make([]record.Histogram, 0, len(list))
	for _, h := range list {
		if h.Lookups <= 0 || len(h.Bins) == 0 {
			continue
		}
		used = append(used, h)
		lookups += float64(h.Lookups)
		for _, b := range h.Bins {
			sizes = append(sizes, b.Bytes)
		}
	}
	slices.Sort(sizes)
	sizes = thin(slices.Compact(sizes), limit)
	n := float64(len(used))
	tokens := max(1, lookups/n/max(1, perToken))
	df := priorRoutings + n - 1
	t := distuv.StudentsT{Sigma: 1, Nu: max(1, df)}.Quantile((1 + level) / 2)
	out := make([]PooledHit, 0, len(sizes))
	for _, at := range sizes {
		var mean, squares float64
		rates := make([]float64, len(used))
		for i := range used {
			rates[i] = CurveAt(&used[i], at)
			mean += rates[i] * float64(used[i].Lookups) / lookups
		}
		for _, h := range rates {
			squares += (h - mean) * (h - mean)
		}
		variance := (priorRoutings*mean*(1-mean)/tokens + squares) / df
		out = append(out, PooledHit{Bytes: at, Hit: mean, Half: t * math.Sqrt(variance*(1+1/n))})
	}
	return out
}

// CurveAt is a histogram's share of hits in a cache of that size, between its
// bins on a line.
func CurveAt(h *record.Histogram, bytes int64) float64 {
	var below, at int64
	var hits float64
	for _, b := range h.Bins { // by rising size
		at = b.Bytes
		if bytes < at {
			return (hits + float64(b.Count)*float64(bytes-below)/float64(at-below)) / float64(h.Lookups)
		}
		hits += float64(b.Count)
		below = at
	}
	return hits / float64(h.Lookups)
}

// thin keeps at most limit values, the last among them, evenly spread.
func thin(v []int64, limit int) []int64 {
	if limit <= 0 || len(v) <= limit {
		return v
	}
	out := make([]int64, limit)
	for i := range out {
		out[i] = v[(i+1)*len(v)/limit-1]
	}
	return out
}
