package reports

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/plotter"

	"github.com/bmoe/bmoe/analysis"
)

// HitsFigure shows hit rate against the share of the experts held, with every
// hypothesis. Curves are drawn strong inside the band they were fitted in and
// grey beyond it.
func HitsFigure(name, title string, points []analysis.HitPoint, fit *analysis.HitFit) (Figure, error) {
	p := newPlot(fmt.Sprintf("Hit rate: %s, n = %d points", title, fit.Points), "share of the routed experts held", "decode lookups that hit, %")
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 100
	caption := fmt.Sprintf("Hit rate against the share of experts held, %s; n = %s.", title, analysis.Count(fit.Points, "point"))
	clusterOf := map[string]int{}
	var xy []plotter.XYs
	for _, q := range points {
		i, ok := clusterOf[q.Cluster]
		if !ok {
			i = len(xy)
			clusterOf[q.Cluster] = i
			xy = append(xy, nil)
		}
		xy[i] = append(xy[i], plotter.XY{X: q.F, Y: 100 * q.H})
	}
	for i, of := range xy {
		if err := addPoints(p, of, 3.5, black, seeThrough[i%len(seeThrough)], ""); err != nil {
			return Figure{}, err
		}
	}
	shown := append([]analysis.Hypothesis{fit.Line}, fit.Rivals...)
	for i, h := range shown {
		if err := addLine(p, sample(h.Predict, 0.001, 1), 0.7, grey, i, ""); err != nil {
			return Figure{}, err
		}
		label := fmt.Sprintf("%s, RMSE %.3f", hypothesisName(h), h.RMSE)
		if err := addLine(p, sample(h.Predict, h.BandLo, h.BandHi), 1.8, black, i, label); err != nil {
			return Figure{}, err
		}
		caption += fmt.Sprintf(" %s: RMSE %.3f.", hypothesisName(h), h.RMSE)
	}
	if i := fit.Interval; i.Level > 0 {
		caption += fmt.Sprintf(" k %.2f to %.2f at %s %%.", i.Lo, i.Hi, percent(i.Level))
	}
	caption += " Strong lines cover the band of the points. The straight line is " + fit.Shape.Verdict + "."
	p.Legend.Top = false
	return figure(p, name, caption, plotHeight), nil
}

func hypothesisName(h analysis.Hypothesis) string {
	switch h.Name {
	case analysis.HypothesisLine:
		return fmt.Sprintf("H0 min(1, %.2f f)", h.Value)
	case analysis.HypothesisSaturating:
		return fmt.Sprintf("H1 1 - exp(-%.2f f)", h.Value)
	case analysis.HypothesisCurve:
		return "H2 measured curve"
	}
	return h.Name
}

// sample evaluates a hit rate between two shares, in percent.
func sample(f func(float64) float64, lo, hi float64) plotter.XYs {
	const n = 120
	out := make(plotter.XYs, 0, n+1)
	for i := range n + 1 {
		x := lo + (hi-lo)*float64(i)/n
		out = append(out, plotter.XY{X: x, Y: 100 * math.Min(1, math.Max(0, f(x)))})
	}
	return out
}
