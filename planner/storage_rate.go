package planner

import (
	"cmp"
	"slices"
)

// lanePoint is the storage rate at one lane count, at the deciding size.
type lanePoint struct {
	lanes  int
	rate   float64
	spread float64
}

// laneRates reads the rate curve at the request size of an expert slice, one
// point per lane count, ascending.
func (st *planning) laneRates() []lanePoint {
	curve := st.p.Storage.Curve.Value
	if !st.p.Storage.Curve.OK() || len(curve) == 0 {
		return nil
	}
	at := st.m.sliceBytes()
	byLane := map[int][]RatePoint{}
	for _, p := range curve {
		if p.BytesPerS > 0 && p.Lanes > 0 {
			byLane[p.Lanes] = append(byLane[p.Lanes], p)
		}
	}
	var out []lanePoint
	for lanes, pts := range byLane {
		r, spread := rateAtSize(pts, at)
		out = append(out, lanePoint{lanes, r, max(spread, st.p.Storage.Curve.Spread)})
	}
	slices.SortFunc(out, func(a, b lanePoint) int { return cmp.Compare(a.lanes, b.lanes) })
	return out
}

// rateAtSize interpolates between the two nearest request sizes and does not
// extrapolate beyond the measured ones.
func rateAtSize(pts []RatePoint, at int64) (float64, float64) {
	slices.SortFunc(pts, func(a, b RatePoint) int { return cmp.Compare(a.Size, b.Size) })
	if at <= pts[0].Size {
		return pts[0].BytesPerS, pts[0].Spread
	}
	for i := 1; i < len(pts); i++ {
		a, b := pts[i-1], pts[i]
		if at <= b.Size {
			t := float64(at-a.Size) / float64(max(1, b.Size-a.Size))
			return a.BytesPerS + t*(b.BytesPerS-a.BytesPerS), max(a.Spread, b.Spread)
		}
	}
	last := pts[len(pts)-1]
	return last.BytesPerS, last.Spread
}

// readSeconds is how long n requests of one slice take when they are issued
// together on that many lanes. Fewer requests than lanes do not fill them. The
// time never falls as n grows, whatever noise the curve has.
func readSeconds(points []lanePoint, lanes int, slice int64, n float64) float64 {
	if n <= 0 || len(points) == 0 {
		return 0
	}
	var prevN, prevT, worst float64
	for _, p := range points {
		if p.lanes > lanes && prevN > 0 {
			break
		}
		k := float64(p.lanes)
		worst = max(worst, k*float64(slice)/p.rate)
		if n <= k {
			return prevT + (worst-prevT)*(n-prevN)/(k-prevN)
		}
		prevN, prevT = k, worst
	}
	return prevT / prevN * n
}

// rateAt is the aggregate rate at a lane count: of the nearest measured count
// not above it.
func rateAt(points []lanePoint, lanes int) (float64, float64, bool) {
	if len(points) == 0 {
		return 0, 0, false
	}
	best := points[0]
	for _, p := range points {
		if p.lanes <= lanes {
			best = p
		}
	}
	return best.rate, best.spread, true
}
