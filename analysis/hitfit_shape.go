package analysis

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// KInterval is an interval of the line's coefficient.
type KInterval struct {
	Lo, Hi float64
	Level  float64 // attained, a fraction; 0 where no interval can be given
	Method string
	Note   string // what the reader must know: n too small, one cluster
}

// bootstrapFrom is the number of clusters from which resampling them is sound.
const bootstrapFrom = 8

// bootstrapRounds and its seed are fixed: the same points give the same
// interval.
const bootstrapRounds = 2000

// lineInterval is the interval of k. The unit of analysis is the cluster:
// points of one machine and model are not independent. From eight clusters on
// they are resampled; with fewer, but two or more, their own coefficients are
// the sample and the exact signed-rank interval of their logs is given at the
// level it attains; a single cluster gives the HC3 sandwich of its unclamped
// points (MacKinnon and White, 1985), which says nothing of other models.
func lineInterval(p []HitPoint, k, level float64) KInterval {
	parts := clusters(p)
	switch {
	case len(parts) >= bootstrapFrom:
		return bootstrapInterval(parts, level)
	case len(parts) >= 2:
		return clusterInterval(parts, level)
	}
	return sandwichInterval(p, k, level)
}

func bootstrapInterval(parts [][]HitPoint, level float64) KInterval {
	rng := rand.New(rand.NewPCG(uint64(len(parts)), 20))
	ks := make([]float64, bootstrapRounds)
	for i := range ks {
		var sample []HitPoint
		for range parts {
			sample = append(sample, parts[rng.IntN(len(parts))]...)
		}
		slices.SortFunc(sample, func(a, b HitPoint) int { return cmp.Compare(a.F, b.F) })
		ks[i] = fitLine(sample)
	}
	slices.Sort(ks)
	cut := int(float64(bootstrapRounds) * (1 - level) / 2)
	return KInterval{Lo: ks[cut], Hi: ks[bootstrapRounds-1-cut], Level: level, Method: "cluster bootstrap", Note: fmt.Sprintf("%d clusters resampled", len(parts))}
}

func clusterInterval(parts [][]HitPoint, level float64) KInterval {
	var logs []float64
	for _, part := range parts {
		if k := fitLine(part); k > 0 {
			logs = append(logs, math.Log(k))
		}
	}
	c, ok := SignedRankInterval(logs, level)
	out := KInterval{Lo: math.Exp(c.Lo), Hi: math.Exp(c.Hi), Level: c.Level, Method: "signed-rank over clusters"}
	if !ok {
		out.Note = fmt.Sprintf("%d clusters cannot give %s: this is %s", len(logs), Level(level), Level(c.Level))
	}
	return out
}

func sandwichInterval(p []HitPoint, k, level float64) KInterval {
	out := KInterval{Method: "HC3", Note: "one machine and model: it says nothing of others"}
	var xx float64
	n := 0
	for _, q := range p {
		if k*q.F < 1 {
			xx += q.Weight * q.F * q.F
			n++
		}
	}
	if n < 3 {
		out.Note = fmt.Sprintf("%d points below the clamp: too few for an interval", n)
		return out
	}
	var meat float64
	for _, q := range p {
		if k*q.F < 1 {
			leverage := q.Weight * q.F * q.F / xx
			e := (q.H - k*q.F) / (1 - leverage)
			meat += q.Weight * q.Weight * q.F * q.F * e * e
		}
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile((1 + level) / 2)
	half := t * math.Sqrt(meat) / xx
	out.Lo, out.Hi, out.Level = math.Max(0, k-half), k+half, level
	return out
}

// medianRatio is the weighted median of h/f over the points below the clamp:
// the robust twin of least squares through the origin.
func medianRatio(p []HitPoint, k float64) float64 {
	type ratio struct{ r, w float64 }
	var rs []ratio
	var total float64
	for _, q := range p {
		if k*q.F < 1 && q.H > 0 {
			rs = append(rs, ratio{q.H / q.F, q.Weight})
			total += q.Weight
		}
	}
	if len(rs) == 0 {
		return math.NaN()
	}
	slices.SortFunc(rs, func(a, b ratio) int { return cmp.Compare(a.r, b.r) })
	var sum float64
	for i, r := range rs {
		sum += r.w
		switch {
		case sum == total/2 && i+1 < len(rs):
			return (r.r + rs[i+1].r) / 2
		case sum > total/2:
			return r.r
		}
	}
	return rs[len(rs)-1].r
}

// Verdicts on the shape of the line.
const (
	ShapeRefuted   = "refuted"   // the line is the wrong shape here
	ShapeUndecided = "undecided" // too few points, or too small a trend, to tell
	ShapeKept      = "kept"      // no trend found that these points would have shown
)

// ShapeTest is the lack of fit of the line through the origin. If the line
// holds, h/f does not depend on f below the clamp, so the order of the ratios
// is random: Kendall's exact test of their trend. The size is the coefficient
// of the lower half against that of the upper half.
type ShapeTest struct {
	Verdict string
	P       float64 // two-sided
	Points  int     // below the clamp
	KLow    float64 // from the lower half of them by f
	KHigh   float64 // from the upper half
	Reason  string
}

// shapeMargin is the ratio of the two halves' coefficients below which a trend
// is too small to matter.
const shapeMargin = 1.1

func testShape(p []HitPoint, fit *HitFit, alpha float64) ShapeTest {
	var below []HitPoint
	for _, q := range p {
		if fit.Line.Value*q.F < 1 && q.H > 0 {
			below = append(below, q)
		}
	}
	s := ShapeTest{Verdict: ShapeUndecided, P: 1, Points: len(below), KLow: math.NaN(), KHigh: math.NaN()}
	if len(below) < 2 {
		s.Reason = fmt.Sprintf("%d points below the clamp: no trend can be seen", len(below))
		return s
	}
	half := len(below) / 2
	s.KLow, s.KHigh = fitRaw(below[:half]), fitRaw(below[len(below)-half:])
	s.P = kendallP(below)
	size := math.Abs(math.Log(s.KLow / s.KHigh))
	smallest := math.Min(1, 2/math.Exp(lgamma(float64(len(below)+1))))
	rival := fit.Rivals[0]
	residuals := fmt.Sprintf("RMSE %.3f against %.3f for 1-exp(-a f)", fit.Line.RMSE, rival.RMSE)
	switch {
	case smallest > alpha:
		s.Reason = fmt.Sprintf("%d points below the clamp cannot show a trend at %.2g; %s", len(below), alpha, residuals)
	case s.P <= alpha && size > math.Log(shapeMargin):
		s.Verdict = ShapeRefuted
		s.Reason = fmt.Sprintf("k goes from %.2f at small caches to %.2f at large ones (p %.2g, %d points); %s", s.KLow, s.KHigh, s.P, len(below), residuals)
	case s.P > alpha && size <= math.Log(shapeMargin):
		s.Verdict = ShapeKept
		s.Reason = fmt.Sprintf("k is %.2f at small caches and %.2f at large ones (p %.2g, %d points); %s", s.KLow, s.KHigh, s.P, len(below), residuals)
	default:
		s.Reason = fmt.Sprintf("k is %.2f at small caches and %.2f at large ones, but p is %.2g (%d points); %s", s.KLow, s.KHigh, s.P, len(below), residuals)
	}
	return s
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

// kendallP is the exact two-sided p of Kendall's test for a trend of h/f in f.
// Ties count half a discordant pair.
func kendallP(p []HitPoint) float64 {
	var down float64
	pairs := 0.0
	for i := range p {
		for j := i + 1; j < len(p); j++ {
			a, b := p[i].H/p[i].F, p[j].H/p[j].F
			pairs++
			switch {
			case p[i].F == p[j].F || a == b:
				down += 0.5
			case a > b:
				down++
			}
		}
	}
	counts := inversionCounts(len(p))
	few := math.Floor(math.Min(down, pairs-down) + 0.5)
	var tailP float64
	for i := 0; i <= int(few) && i < len(counts); i++ {
		tailP += counts[i]
	}
	return math.Min(1, 2*tailP)
}
