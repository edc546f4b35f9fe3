package reports

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// driftFigure shows every run's rate in the order they were run, so that a
// machine that slows down is seen.
func driftFigure(e record.Experiment, v record.Verdict, runs []*record.StoredRun) (Figure, bool, error) {
	byArm := map[string]plotter.XYs{}
	n, low, top := 0, math.Inf(1), 0.0
	for _, r := range runs {
		if s := r.Run.Measured.DecodeSPerToken; s > 0 {
			byArm[r.Slot.Arm] = append(byArm[r.Slot.Arm], plotter.XY{X: float64(r.Slot.Index), Y: 1 / s})
			n++
			low, top = min(low, 1/s), max(top, 1/s)
		}
	}
	if n < 2 {
		return Figure{}, false, nil
	}
	p := newPlot(fmt.Sprintf("%s: every run, in the order run, n = %d", leverTitle(e), n), "run index", "decode, t/s")
	p.X.Min, p.X.Max = 0, float64(max(len(e.Schedule)-1, runs[len(runs)-1].Slot.Index))
	at := driftAxis(p, low, top, len(byArm))
	for i, a := range e.Arms {
		xy := byArm[a.Name]
		if len(xy) == 0 {
			continue
		}
		for j := range xy {
			xy[j].Y = at(xy[j].Y)
		}
		if err := addLine(p, xy, 0.6, light, 0, ""); err != nil {
			return Figure{}, false, err
		}
		if err := addPoints(p, xy, 3.5, black, i, fmt.Sprintf("%s (n = %d)", a.Name, len(xy))); err != nil {
			return Figure{}, false, err
		}
	}
	caption := fmt.Sprintf("Decode rate by run index; n = %s.", analysis.Count(n, "run"))
	if none := len(runs) - n; none > 0 {
		caption += fmt.Sprintf(" %s more gave no rate.", analysis.Count(none, "run"))
	}
	if v.Drift != nil {
		caption += " Drift: " + driftSentence(*v.Drift) + "."
	}
	return figure(p, "drift-"+short(e.ID), caption, plotHeight), true, nil
}

// driftAxis sets up the axis of rates, with lines at its ticks and room above
// the rates for the legend, a line for each arm. It returns where a rate lies.
func driftAxis(p *plot.Plot, low, top float64, arms int) func(float64) float64 {
	room := 0.1 + 0.06*float64(arms)
	at := func(rate float64) float64 { return rate }
	if top > logAbove*low {
		at = math.Log10
		logAxis(&p.Y, low, top)
		p.Y.Label.Text += " (log axis)"
		p.Y.Max += room * (p.Y.Max - p.Y.Min)
	} else {
		p.Y.Min, p.Y.Max = 0, top*(1+room)
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Value > at(top)+0.02*(p.Y.Max-p.Y.Min) {
			break // the legend's
		}
		if l, err := line(segment(p.X.Min, t.Value, p.X.Max, t.Value), 0.5, light, 0); err == nil {
			p.Add(l)
		}
	}
	return at
}
