package probes

import (
	"cmp"
	"slices"

	"github.com/bmoe/bmoe/planner"
)

// point is one place on the rate curve.
type point struct {
	size  int64
	lanes int
}

// curve collects the samples of every point.
type curve struct {
	points map[point][]sample
	all    map[point][]sample // short samples that long ones replaced, for drift
}

func newCurve() *curve {
	return &curve{points: map[point][]sample{}, all: map[point][]sample{}}
}

func (c *curve) add(size int64, lanes int, s sample) {
	k := point{size, lanes}
	c.points[k] = append(c.points[k], s)
	c.all[k] = append(c.all[k], s)
}

func (c *curve) drop(size int64, lanes int) { delete(c.points, point{size, lanes}) }

// decide replaces a point's samples by longer ones.
func (c *curve) decide(size int64, lanes int, long []sample) {
	k := point{size, lanes}
	c.points[k] = long
	c.all[k] = append(c.all[k], long...)
}

// bestLanes is the largest lane count within the tolerance of the best rate.
func (c *curve) bestLanes(size int64) int {
	var top float64
	for k, s := range c.points {
		if k.size == size {
			rate, _ := medianSpread(rates(s))
			top = max(top, rate)
		}
	}
	best := 0
	for k, s := range c.points {
		rate, _ := medianSpread(rates(s))
		if k.size == size && rate >= (1-tolerance)*top {
			best = max(best, k.lanes)
		}
	}
	return best
}

// list is the curve as facts, by size, then lanes.
func (c *curve) list() []planner.RatePoint {
	var out []planner.RatePoint
	for k, s := range c.points {
		rate, spread := medianSpread(rates(s))
		out = append(out, planner.RatePoint{Size: k.size, Lanes: k.lanes, BytesPerS: rate, Spread: spread})
	}
	slices.SortFunc(out, func(a, b planner.RatePoint) int {
		return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Lanes, b.Lanes))
	})
	return out
}

func rates(s []sample) []float64 {
	out := make([]float64, len(s))
	for i := range s {
		out[i] = s[i].rate()
	}
	return out
}

// medianSpread is the median and (largest - smallest) / median.
func medianSpread(v []float64) (median, spread float64) {
	if len(v) == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(v))
	median = s[len(s)/2]
	if len(s)%2 == 0 {
		median = (s[len(s)/2-1] + s[len(s)/2]) / 2
	}
	return median, (s[len(s)-1] - s[0]) / median
}

func slowest(v []float64) float64 { return slices.Min(v) }
func fastest(v []float64) float64 { return slices.Max(v) }
