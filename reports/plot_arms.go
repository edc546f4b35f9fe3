package reports

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// armsFigure shows every arm's change against the baseline: the estimate, its
// interval, and each pair as a dot.
func armsFigure(e record.Experiment, v record.Verdict, _ []*record.StoredRun) (Figure, bool, error) {
	if !slices.ContainsFunc(v.Comparisons, func(c record.Comparison) bool { return c.Pairs > 0 }) {
		return Figure{}, false, nil
	}
	p := newPlot(armsTitle(e, v), fmt.Sprintf("change of %s, %% (right is better)", e.Metric), "")
	labels := make(names, len(v.Comparisons))
	lo, hi := -200*e.Margin, 200*e.Margin
	for i, c := range v.Comparisons {
		y := float64(i)
		labels[i] = fmt.Sprintf("%s: %s, n = %d", c.Arm, c.Verdict, c.Pairs)
		if !oneBaseline(v) {
			labels[i] = fmt.Sprintf("%s against %s: %s, n = %d", c.Arm, c.Baseline, c.Verdict, c.Pairs)
		}
		if err := addArm(p, c, y, &lo, &hi); err != nil {
			return Figure{}, false, err
		}
	}
	top := float64(len(labels)) - 0.5
	for _, x := range []float64{-100 * e.Margin, 0, 100 * e.Margin} {
		dash := 1
		if x == 0 {
			dash = 0
		}
		if err := addLine(p, segment(x, -0.5, x, top), 0.7, grey, dash, ""); err != nil {
			return Figure{}, false, err
		}
	}
	p.Y.Tick.Marker = labels
	p.X.Tick.Marker = roundTicks{}
	p.Y.Min, p.Y.Max = -0.5, top
	p.X.Min, p.X.Max = lo-0.05*(hi-lo), hi+0.05*(hi-lo)
	caption := fmt.Sprintf("%s: square and bar are the estimate and its interval (%s), small circles the single pairs, dashed lines the margin of %s %%; n = %s.",
		"Arms of "+armsTitle(e, v), levels(v.Comparisons), percent(e.Margin), pairsOf(v.Comparisons))
	return figure(p, "arms-"+short(e.ID), caption, vg.Length(3+1.4*float64(len(labels)))*vg.Centimeter+2*vg.Centimeter), true, nil
}

// oneBaseline reports whether every arm is compared with the same one.
func oneBaseline(v record.Verdict) bool {
	return !slices.ContainsFunc(v.Comparisons, func(c record.Comparison) bool { return c.Baseline != v.Comparisons[0].Baseline })
}

// armsTitle names what is compared, with the lever's unit.
func armsTitle(e record.Experiment, v record.Verdict) string {
	name := leverTitle(e)
	if oneBaseline(v) {
		name += " against " + v.Comparisons[0].Baseline
	}
	return name
}

// leverTitle names an experiment's lever with its unit.
func leverTitle(e record.Experiment) string {
	name := orWord(e.Lever, e.Kind)
	if p, ok := config.Lookup(e.Lever); ok && p.Unit != "" {
		name += " (" + p.Unit + ")"
	}
	return name
}

func addArm(p *plot.Plot, c record.Comparison, y float64, lo, hi *float64) error {
	var dots plotter.XYs
	for i, d := range c.Deltas {
		x := 100 * math.Expm1(d)
		// Spread over a fixed pattern, so that equal pairs stay apart.
		dots = append(dots, plotter.XY{X: x, Y: y - 0.12 - 0.05*float64(i%5)})
		*lo, *hi = math.Min(*lo, x), math.Max(*hi, x)
	}
	if len(dots) > 0 {
		if err := addPoints(p, dots, 2.5, grey, 4, ""); err != nil {
			return err
		}
	}
	if c.Pairs == 0 {
		return nil
	}
	a, b, at := 100*c.Lo, 100*c.Hi, 100*c.Effect
	if !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		*lo, *hi = math.Min(*lo, a), math.Max(*hi, b)
		for _, s := range []plotter.XYs{segment(a, y+0.15, b, y+0.15), segment(a, y+0.08, a, y+0.22), segment(b, y+0.08, b, y+0.22)} {
			if err := addLine(p, s, 1.6, black, 0, ""); err != nil {
				return err
			}
		}
	}
	return addPoints(p, segment(at, y+0.15, at, y+0.15)[:1], 4, black, 5, "")
}

func orWord(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// levels says the attained level, or the range of them.
func levels(list []record.Comparison) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, c := range list {
		if c.Pairs > 0 {
			lo, hi = math.Min(lo, c.Level), math.Max(hi, c.Level)
		}
	}
	if percent(lo) == percent(hi) {
		return percent(lo) + " %"
	}
	return percent(lo) + " to " + percent(hi) + " %"
}

func pairsOf(list []record.Comparison) string {
	lo, hi := list[0].Pairs, list[0].Pairs
	for _, c := range list {
		lo, hi = min(lo, c.Pairs), max(hi, c.Pairs)
	}
	if lo == hi {
		return analysis.Count(lo, "pair")
	}
	return fmt.Sprintf("%d to %d pairs", lo, hi)
}
