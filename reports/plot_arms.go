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
	p := newPlot(armsTitle(e, v), "", "")
	labels := make(names, len(v.Comparisons))
	for i, c := range v.Comparisons {
		labels[i] = fmt.Sprintf("%s: %s, n = %d", c.Arm, c.Verdict, c.Pairs)
		if !oneBaseline(v) {
			labels[i] = fmt.Sprintf("%s against %s: %s, n = %d", c.Arm, c.Baseline, c.Verdict, c.Pairs)
		}
	}
	var axis changes
	axis.hold(-2*e.Margin, 2*e.Margin)
	axis.holdAll(v.Comparisons)
	axis.axis(p, rateName(e.Metric), labels)
	for _, x := range []float64{-e.Margin, 0, e.Margin} { // first: under the bars
		dash := 1
		if x == 0 {
			dash = 0
		}
		if err := axis.level(p, x, dash); err != nil {
			return Figure{}, false, err
		}
	}
	for i, c := range v.Comparisons {
		if err := addArm(p, &axis, c, float64(i)); err != nil {
			return Figure{}, false, err
		}
	}
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
	if e.Kind == kindAA {
		name = "A/A control"
	}
	if p, ok := config.Lookup(e.Lever); ok && p.Unit != "" {
		name += " (" + p.Unit + ")"
	}
	return name
}

func addArm(p *plot.Plot, axis *changes, c record.Comparison, y float64) error {
	if c.Pairs == 0 {
		return nil
	}
	var dots plotter.XYs
	for i, d := range c.Deltas {
		// Spread over a fixed pattern, so that equal pairs stay apart.
		dots = append(dots, plotter.XY{X: axis.at(math.Expm1(d)), Y: y - 0.12 - 0.05*float64(i%5)})
	}
	if len(dots) > 0 {
		if err := addPoints(p, dots, 2.5, grey, ring, ""); err != nil {
			return err
		}
	}
	return axis.interval(p, c, y+0.15)
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
