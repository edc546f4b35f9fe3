package reports

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/plotter"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// pointsDrawn bounds the runs of a plot: more than these are a black cloud.
const pointsDrawn = 300

// predictedFigure shows predicted against measured s/token on log axes.
func predictedFigure(runs []*record.StoredRun) (Figure, bool, error) {
	both := predicted(runs)
	if len(both) == 0 {
		return Figure{}, false, nil
	}
	drawn := both[max(len(both)-pointsDrawn, 0):]
	p := newPlot(fmt.Sprintf("Decode: predicted against measured, n = %s", analysis.Count(len(drawn), "run")), "predicted, s/token (log axis)", "measured, s/token (log axis)")
	lo, hi, inside := math.Inf(1), math.Inf(-1), 0
	for _, r := range drawn { // the bars first: points lie over them
		e, m := r.Run.Prediction.DecodeSPerToken, r.Run.Measured.DecodeSPerToken
		left, right := e.Lo, max(e.Hi, e.Point)
		if left <= 0 {
			left = e.Point
		}
		lo, hi = min(lo, left, m), max(hi, right, m)
		if m >= e.Lo && m <= e.Hi {
			inside++
		}
		if err := addLine(p, segment(math.Log10(left), math.Log10(m), math.Log10(right), math.Log10(m)), 0.7, light, 0, ""); err != nil {
			return Figure{}, false, err
		}
	}
	settings := groups(drawn)
	for i, g := range settings {
		var xy plotter.XYs
		for _, r := range g.runs {
			xy = append(xy, plotter.XY{X: math.Log10(r.Run.Prediction.DecodeSPerToken.Point), Y: math.Log10(r.Run.Measured.DecodeSPerToken)})
		}
		name := fmt.Sprintf("%s (n = %d)", orWord(g.model.Name, short(g.model.ID)), len(xy))
		if err := addPoints(p, xy, 3.5, black, seeThrough[i%len(seeThrough)], name); err != nil {
			return Figure{}, false, err
		}
	}
	logAxis(&p.X, lo, hi)
	logAxis(&p.Y, lo, hi)
	if err := addLine(p, segment(p.X.Min, p.X.Min, p.X.Max, p.X.Max), 0.8, black, 1, "measured = predicted"); err != nil {
		return Figure{}, false, err
	}
	p.Legend.Left = true
	p.Y.Max += 0.07 * float64(len(settings)+1) * (p.Y.Max - p.Y.Min) // room for the legend
	caption := fmt.Sprintf("Predicted against measured seconds per decoded token, log axes, n = %s; bars are the predicted intervals, the dashed line is a perfect prediction. %d of n = %d measured inside their interval.", analysis.Count(len(drawn), "run"), inside, len(drawn))
	if len(drawn) < len(both) {
		caption += fmt.Sprintf(" These are the newest; the table counts all %d.", len(both))
	}
	return figure(p, "predicted-decode", caption, plotHeight), true, nil
}

// predicted keeps the runs that have both a predicted and a measured rate.
func predicted(runs []*record.StoredRun) (out []*record.StoredRun) {
	for _, r := range runs {
		p := r.Run.Prediction
		if len(r.Void) == 0 && p != nil && p.DecodeSPerToken.Known && p.DecodeSPerToken.Point > 0 && r.Run.Measured.DecodeSPerToken > 0 {
			out = append(out, r)
		}
	}
	return out
}
