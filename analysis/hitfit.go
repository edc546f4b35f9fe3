package analysis

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
)

// HitPoint is one observed hit rate.
type HitPoint struct {
	F       float64 // share of the routed expert bytes the cache holds
	H       float64 // share of decode lookups that hit
	Weight  float64 // inverse variance, or 1; 0 counts as 1
	Cluster string  // what the points of one cluster share: machine and model
}

// The hypotheses about hit rate against the share f held.
const (
	HypothesisLine       = "h0-line"       // h = min(1, k f)
	HypothesisSaturating = "h1-saturating" // h = 1 - exp(-a f)
	HypothesisCurve      = "h2-curve"      // the measured stack-distance curve
	HypothesisRaw        = "h0-raw"        // h = k f, unclamped: how a line alone does
)

// Hypothesis is one shape with its fitted parameter and its residual.
type Hypothesis struct {
	Name      string
	Param     string // k, a; "" for a curve
	Value     float64
	RMSE      float64 // weighted, in hit rate
	LeftOut   float64 // RMSE of predicting each cluster (or point) from the others; NaN where it cannot be
	Predict   func(f float64) float64
	BandLo    float64 // the f it was fitted in
	BandHi    float64
	Parameter bool // false: nothing was fitted
}

// HitFit is everything the points say.
type HitFit struct {
	Points   int
	Clusters int
	Line     Hypothesis // H0
	Raw      Hypothesis
	Rivals   []Hypothesis // H1 and, where a curve was measured, H2
	Ratio    float64      // weighted median of h/f over the points below the clamp: H0's robust twin
	Interval KInterval    // of H0's k
	Shape    ShapeTest    // lack of fit of H0
}

// Hypotheses returns all shapes, H0 first.
func (f *HitFit) Hypotheses() []Hypothesis {
	return append([]Hypothesis{f.Line, f.Raw}, f.Rivals...)
}

// FitHits fits the hypotheses to points. curve is H2, nil where none was
// measured. It needs two points with f and h above 0.
func FitHits(points []HitPoint, curve func(f float64) float64, level float64) (*HitFit, error) {
	p, err := cleanPoints(points)
	if err != nil {
		return nil, err
	}
	fit := &HitFit{Points: len(p), Clusters: len(clusters(p))}
	fit.Line = fitted(p, HypothesisLine, "k", fitLine, lineAt)
	fit.Raw = fitted(p, HypothesisRaw, "k", fitRaw, func(k, f float64) float64 { return k * f })
	fit.Rivals = []Hypothesis{fitted(p, HypothesisSaturating, "a", fitSaturating, saturatingAt)}
	if curve != nil {
		h := Hypothesis{Name: HypothesisCurve, Predict: curve, LeftOut: math.NaN()}
		h.RMSE = rmse(p, curve)
		h.BandLo, h.BandHi = band(p)
		fit.Rivals = append(fit.Rivals, h)
	}
	fit.Ratio = medianRatio(p, fit.Line.Value)
	fit.Interval = lineInterval(p, fit.Line.Value, level)
	fit.Shape = testShape(p, fit, 1-level)
	return fit, nil
}

func cleanPoints(points []HitPoint) ([]HitPoint, error) {
	p := slices.Clone(points)
	useful := 0
	for i := range p {
		if p[i].Weight == 0 {
			p[i].Weight = 1
		}
		if !(p[i].F > 0) || !(p[i].H >= 0 && p[i].H <= 1) || !(p[i].Weight > 0) || math.IsInf(p[i].F, 0) || math.IsInf(p[i].Weight, 0) {
			return nil, fmt.Errorf("hit point %d: f %v, h %v, weight %v: want f above 0, h from 0 to 1, a positive weight", i+1, p[i].F, p[i].H, p[i].Weight)
		}
		if p[i].H > 0 {
			useful++
		}
	}
	if useful < 2 {
		return nil, fmt.Errorf("%d hit rates above 0: a fit wants at least 2", useful)
	}
	slices.SortStableFunc(p, func(a, b HitPoint) int {
		switch {
		case a.F < b.F:
			return -1
		case a.F > b.F:
			return 1
		}
		return 0
	})
	return p, nil
}

func lineAt(k, f float64) float64       { return math.Min(1, k*f) }
func saturatingAt(a, f float64) float64 { return -math.Expm1(-a * f) }

func fitted(p []HitPoint, name, param string, fit func([]HitPoint) float64, at func(v, f float64) float64) Hypothesis {
	v := fit(p)
	h := Hypothesis{Name: name, Param: param, Value: v, Parameter: true, Predict: func(f float64) float64 { return at(v, f) }}
	h.RMSE = rmse(p, h.Predict)
	h.BandLo, h.BandHi = band(p)
	h.LeftOut = leaveOut(p, fit, at)
	return h
}

func band(p []HitPoint) (lo, hi float64) { return p[0].F, p[len(p)-1].F }

func rmse(p []HitPoint, at func(f float64) float64) float64 {
	var sum, w float64
	for _, q := range p {
		d := q.H - at(q.F)
		sum += q.Weight * d * d
		w += q.Weight
	}
	return math.Sqrt(sum / w)
}

// fitRaw is weighted least squares through the origin.
func fitRaw(p []HitPoint) float64 {
	x, y, w := make([]float64, len(p)), make([]float64, len(p)), make([]float64, len(p))
	for i, q := range p {
		x[i], y[i], w[i] = q.F, q.H, q.Weight
	}
	_, k := stat.LinearRegression(x, y, w, true)
	return k
}

// fitLine minimises the weighted squares of min(1, k f) exactly. Between two
// neighbouring values of k at which a point meets the clamp the sum is a
// parabola in k, so the minimum is one of its vertices or of those values. p
// is in ascending order of F: the clamped points are the last ones.
func fitLine(p []HitPoint) float64 {
	// Sums over the points before i, and of the clamp's residual from i on.
	n := len(p)
	sums := make([]struct{ yy, xy, xx, rest float64 }, n+1)
	for i, q := range p {
		s, t := sums[i], &sums[i+1]
		t.yy, t.xy, t.xx = s.yy+q.Weight*q.H*q.H, s.xy+q.Weight*q.F*q.H, s.xx+q.Weight*q.F*q.F
	}
	for i := n - 1; i >= 0; i-- {
		sums[i].rest = sums[i+1].rest + p[i].Weight*(1-p[i].H)*(1-p[i].H)
	}
	best, bestSum := math.NaN(), math.Inf(1)
	try := func(k float64) {
		if !(k > 0) || math.IsInf(k, 0) {
			return
		}
		s := sums[sort.Search(n, func(i int) bool { return k*p[i].F >= 1 })]
		if sum := s.yy - 2*k*s.xy + k*k*s.xx + s.rest; sum < bestSum {
			best, bestSum = k, sum
		}
	}
	for i := range p {
		try(sums[i+1].xy / sums[i+1].xx) // the points up to i below the clamp
		try(1 / p[i].F)
	}
	return best
}

// fitSaturating minimises the weighted squares of 1 - exp(-a f): a grid over
// the decades in which a can matter, then golden-section search.
func fitSaturating(p []HitPoint) float64 {
	cost := func(logA float64) float64 {
		return rmse(p, func(f float64) float64 { return saturatingAt(math.Exp(logA), f) })
	}
	lo, hi := math.Log(1e-3/p[len(p)-1].F), math.Log(1e3/p[0].F)
	const steps = 200
	best := lo
	for i := range steps + 1 {
		if x := lo + (hi-lo)*float64(i)/steps; cost(x) < cost(best) {
			best = x
		}
	}
	width := (hi - lo) / steps
	return math.Exp(goldenSection(cost, best-width, best+width))
}

// goldenSection finds the minimum of a function that has one between a and b.
func goldenSection(f func(float64) float64, a, b float64) float64 {
	phi := (math.Sqrt(5) - 1) / 2
	c, d := b-phi*(b-a), a+phi*(b-a)
	for range 100 {
		if f(c) < f(d) {
			b, d = d, c
			c = b - phi*(b-a)
		} else {
			a, c = c, d
			d = a + phi*(b-a)
		}
	}
	return (a + b) / 2
}

// clusters groups points by their cluster, in the order of first appearance.
func clusters(p []HitPoint) [][]HitPoint {
	at := map[string]int{}
	var out [][]HitPoint
	for _, q := range p {
		i, ok := at[q.Cluster]
		if !ok {
			i = len(out)
			at[q.Cluster] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], q)
	}
	return out
}

// leaveOut predicts each cluster, or each point where there is but one cluster,
// from a fit to the rest, and returns the RMSE of those predictions.
func leaveOut(p []HitPoint, fit func([]HitPoint) float64, at func(v, f float64) float64) float64 {
	parts := clusters(p)
	if len(parts) < 2 {
		parts = nil
		for _, q := range p {
			parts = append(parts, []HitPoint{q})
		}
	}
	var sum, w float64
	for i, part := range parts {
		var rest []HitPoint
		for j, other := range parts {
			if j != i {
				rest = append(rest, other...)
			}
		}
		rest, err := cleanPoints(rest)
		if err != nil {
			return math.NaN()
		}
		v := fit(rest)
		for _, q := range part {
			d := q.H - at(v, q.F)
			sum += q.Weight * d * d
			w += q.Weight
		}
	}
	return math.Sqrt(sum / w)
}
