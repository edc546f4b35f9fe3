package reports

import (
	"math"

	"gonum.org/v1/plot"
)

// Logarithmic axes are linear axes of decimal logarithms: gonum centres an
// axis's name by the data, which puts it off the paper on its own log scale.

// logAbove is the ratio of extremes from which a log axis is drawn: on a linear
// one the small values would lie on one spot.
const logAbove = 10

// logTicks are 1, 2 and 5 in every decade, labelled in plain figures.
type logTicks struct{}

// Ticks returns the ticks between two decimal logarithms.
func (logTicks) Ticks(lo, hi float64) []plot.Tick {
	var out []plot.Tick
	for d := math.Floor(lo); d <= math.Ceil(hi); d++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, d)
			if at := math.Log10(v); at >= lo-1e-9 && at <= hi+1e-9 {
				out = append(out, plot.Tick{Value: at, Label: digits(v, 1)})
			}
		}
	}
	return out
}

// logAxis makes an axis logarithmic between two positive values, with some air.
func logAxis(a *plot.Axis, lo, hi float64) {
	const air = 0.1
	a.Min, a.Max = math.Log10(lo)-air, math.Log10(hi)+air
	a.Tick.Marker = logTicks{}
}
