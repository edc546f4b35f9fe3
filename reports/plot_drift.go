package reports

import (
	"fmt"

	"gonum.org/v1/plot/plotter"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// driftFigure shows every run's rate in the order they were run, so that a
// machine that slows down is seen.
func driftFigure(e record.Experiment, v record.Verdict, runs []*record.StoredRun) (Figure, bool, error) {
	byArm := map[string]plotter.XYs{}
	n, top := 0, 0.0
	for _, r := range runs {
		if s := r.Run.Measured.DecodeSPerToken; s > 0 {
			byArm[r.Slot.Arm] = append(byArm[r.Slot.Arm], plotter.XY{X: float64(r.Slot.Index), Y: 1 / s})
			n++
			top = max(top, 1/s)
		}
	}
	if n < 2 {
		return Figure{}, false, nil
	}
	p := newPlot(fmt.Sprintf("%s: every run, in the order run, n = %d", leverTitle(e), n), "run index", "decode, t/s")
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal.Color = 0, light
	p.Add(grid) // first, so that it is under what it is there for
	for i, a := range e.Arms {
		xy := byArm[a.Name]
		if len(xy) == 0 {
			continue
		}
		if err := addLine(p, xy, 0.6, light, 0, ""); err != nil {
			return Figure{}, false, err
		}
		if err := addPoints(p, xy, 3.5, black, i, fmt.Sprintf("%s (n = %d)", a.Name, len(xy))); err != nil {
			return Figure{}, false, err
		}
	}
	// Room for the legend, a line for each arm.
	p.Y.Min, p.Y.Max = 0, top*(1.1+0.06*float64(len(byArm)))
	caption := fmt.Sprintf("Decode rate by run index; n = %s.", analysis.Count(n, "run"))
	if v.Drift != nil {
		caption += " Drift: " + driftSentence(*v.Drift) + "."
	}
	return figure(p, "drift-"+short(e.ID), caption, plotHeight), true, nil
}
