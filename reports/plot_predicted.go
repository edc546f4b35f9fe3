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
	drawn := both[max(len(both)-pointsDrawn, 0):]
	lo, hi, n, inside := math.Inf(1), math.Inf(-1), 0, 0
	p := newPlot("Decode: predicted against measured", "predicted, s/token", "measured, s/token")
	for i, g := range groups(drawn) {
		var xy plotter.XYs
		for _, r := range g.runs {
			e, m := r.Run.Prediction.DecodeSPerToken, r.Run.Measured.DecodeSPerToken
			xy = append(xy, plotter.XY{X: e.Point, Y: m})
			left, right := e.Lo, e.Hi
			if left <= 0 {
				left = e.Point
			}
			lo, hi = min(lo, left, m), max(hi, right, m)
			if err := addLine(p, segment(left, m, right, m), 0.8, grey, 0, ""); err != nil {
				return Figure{}, false, err
			}
			n++
			if m >= e.Lo && m <= e.Hi {
				inside++
			}
		}
		name := fmt.Sprintf("%s (n = %d)", orWord(g.model.Name, short(g.model.ID)), len(xy))
		if err := addPoints(p, xy, 3.5, black, i, name); err != nil {
			return Figure{}, false, err
		}
	}
	if n == 0 {
		return Figure{}, false, nil
	}
	p.Title.Text += ", n = " + analysis.Count(n, "run")
	logAxes(p, lo, hi)
	if err := addLine(p, segment(p.X.Min, p.X.Min, p.X.Max, p.X.Max), 0.8, black, 1, "measured = predicted"); err != nil {
		return Figure{}, false, err
	}
	p.Legend.Left = true
	p.Y.Max *= 2 // room for the legend
	caption := fmt.Sprintf("Predicted against measured seconds per decoded token, log axes; bars are the predicted intervals, the dashed line is a perfect prediction. %d of n = %d measured inside their interval.", inside, n)
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
