package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner"
)

// storageFigure shows the rate of reads by their size, one line for each number
// of concurrent reads, with the spread of each rate. The points of one size are
// set side by side, or they would lie on one another.
func storageFigure(name, machine string, curve []planner.RatePoint) (Figure, bool, error) {
	byLanes := map[int][]planner.RatePoint{}
	n, top := 0, 0.0
	for _, c := range curve {
		if c.Size > 0 && c.BytesPerS > 0 {
			byLanes[c.Lanes] = append(byLanes[c.Lanes], c)
			n++
			top = max(top, c.BytesPerS/1e6*(1+c.Spread/2))
		}
	}
	if n == 0 {
		return Figure{}, false, nil
	}
	p := newPlot(fmt.Sprintf("Storage: rate of reads, n = %d points", n), "size of one read, KiB (log axis)", "MB/s")
	lo, hi := extent(curve)
	logAxis(&p.X, lo, hi)
	p.Y.Min, p.Y.Max = 0, top*1.1
	step := 0.02 * (p.X.Max - p.X.Min) // two glyphs' width
	for i, lanes := range sortedKeys(byLanes) {
		aside := step * (float64(i) - float64(len(byLanes)-1)/2)
		if err := addRates(p, byLanes[lanes], aside, i, analysis.Count(lanes, "lane")); err != nil {
			return Figure{}, false, err
		}
	}
	p.Legend.Top, p.Legend.Left = false, false
	best := bestRate(curve)
	caption := fmt.Sprintf("Rate of reads of the model file by their size and the number at once, %s; n = %s. Bars are as long as the spread of a rate's repetitions; rates of one size are set side by side. The most was %s MB/s, %s of %s KiB.",
		machine, analysis.Count(n, "point"), digits(best.BytesPerS/1e6, 4), analysis.Count(best.Lanes, "lane"), digits(float64(best.Size)/1024, 4))
	return figure(p, name, caption, plotHeight), true, nil
}

// addRates draws the rates of one number of lanes.
func addRates(p *plot.Plot, rates []planner.RatePoint, aside float64, style int, name string) error {
	slices.SortFunc(rates, func(a, b planner.RatePoint) int { return cmp.Compare(a.Size, b.Size) })
	var xy plotter.XYs
	for _, c := range rates {
		at := plotter.XY{X: math.Log10(float64(c.Size)/1024) + aside, Y: c.BytesPerS / 1e6}
		xy = append(xy, at)
		if err := addLine(p, segment(at.X, at.Y*(1-c.Spread/2), at.X, at.Y*(1+c.Spread/2)), 0.7, grey, 0, ""); err != nil {
			return err
		}
	}
	path, err := line(xy, 1, black, style)
	if err != nil {
		return err
	}
	marks, err := points(xy, 3.5, black, style)
	if err != nil {
		return err
	}
	p.Add(path, marks)
	p.Legend.Add(name, path, marks)
	return nil
}

func extent(curve []planner.RatePoint) (lo, hi float64) {
	for i, c := range curve {
		x := float64(c.Size) / 1024
		if i == 0 || x < lo {
			lo = x
		}
		hi = max(hi, x)
	}
	return lo, hi
}

func bestRate(curve []planner.RatePoint) (best planner.RatePoint) {
	for _, c := range curve {
		if c.BytesPerS > best.BytesPerS {
			best = c
		}
	}
	return best
}

func sortedKeys[V any](m map[int]V) []int {
	var out []int
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
