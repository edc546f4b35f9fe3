package reports

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/bmoe/bmoe/results/record"
)

// changes is an axis of changes of a rate. Where the rates span more than
// tenfold it is a log axis of their ratios: in percent the small ones, margin
// and all, would lie on one spot.
type changes struct{ lo, hi float64 } // ratios less one of all that is drawn

// hold makes room for changes, ratios less one. Infinite ones have none.
func (c *changes) hold(list ...float64) {
	for _, x := range list {
		if !math.IsInf(x, 0) && !math.IsNaN(x) {
			c.lo, c.hi = math.Min(c.lo, x), math.Max(c.hi, x)
		}
	}
}

// holdAll makes room for comparisons.
func (c *changes) holdAll(list []record.Comparison) {
	for _, cmp := range list {
		if cmp.Pairs == 0 {
			continue
		}
		c.hold(cmp.Effect, cmp.Lo, cmp.Hi)
		for _, d := range cmp.Deltas {
			c.hold(math.Expm1(d))
		}
	}
}

// ratios reports whether the axis is one of ratios.
func (c *changes) ratios() bool { return c.lo > -1 && 1+c.hi > logAbove*(1+c.lo) }

// at is where on the axis a change is drawn.
func (c *changes) at(x float64) float64 {
	if c.ratios() {
		return math.Log10(1 + x)
	}
	return 100 * x
}

// axis sets up the axis of a plot whose rows lie at 0, 1, 2...
func (c *changes) axis(p *plot.Plot, rate string, rows names) {
	p.X.Label.Text = "change of the " + rate + ", % (right is better)"
	if c.ratios() {
		p.X.Label.Text = rate + ", the baseline's = 1 (log axis)" // short: a long one narrows the plot
		logAxis(&p.X, 1+c.lo, 1+c.hi)
	} else {
		air := 5 * (c.hi - c.lo)
		p.X.Min, p.X.Max = 100*c.lo-air, 100*c.hi+air
	}
	p.Y.Min, p.Y.Max = -0.5, float64(len(rows))-0.5
	p.Y.Tick.Marker = rows
}

// level draws a change that all rows are held against, from top to bottom.
func (c *changes) level(p *plot.Plot, x float64, dash int) error {
	return addLine(p, segment(c.at(x), p.Y.Min, c.at(x), p.Y.Max), 0.7, grey, dash, "")
}

// interval draws a comparison's estimate and interval at a height.
func (c *changes) interval(p *plot.Plot, cmp record.Comparison, y float64) error {
	if cmp.Level > 0 && !math.IsInf(cmp.Lo, 0) && !math.IsInf(cmp.Hi, 0) {
		a, b := c.at(cmp.Lo), c.at(cmp.Hi)
		for _, s := range []plotter.XYs{segment(a, y, b, y), segment(a, y-0.07, a, y+0.07), segment(b, y-0.07, b, y+0.07)} {
			if err := addLine(p, s, 1.6, black, 0, ""); err != nil {
				return err
			}
		}
	}
	return addPoints(p, plotter.XYs{{X: c.at(cmp.Effect), Y: y}}, 4, black, filledSquare, "")
}

// rateName is what a sweep's metric compares: more of it is better.
func rateName(metric string) string {
	switch metric {
	case "decode":
		return "decode rate"
	case "prefill":
		return "prompt's rate"
	case "ttft":
		return "speed to the first token"
	case "load":
		return "speed of loading"
	}
	return metric
}
