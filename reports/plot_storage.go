package reports

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner"
)

// storageFigure shows the rate of reads by their size, one line for each number
// of concurrent reads.
func storageFigure(name, machine string, curve []planner.RatePoint) (Figure, bool, error) {
	byLanes := map[int]plotter.XYs{}
	n, top := 0, 0.0
	for _, c := range curve {
		if c.Size > 0 && c.BytesPerS > 0 {
			byLanes[c.Lanes] = append(byLanes[c.Lanes], plotter.XY{X: float64(c.Size) / 1024, Y: c.BytesPerS / 1e6})
			n++
			top = max(top, c.BytesPerS/1e6)
		}
	}
	if n == 0 {
		return Figure{}, false, nil
	}
	p := newPlot(fmt.Sprintf("Storage: rate of reads, n = %d points", n), "size of one read, KiB (log axis)", "MB/s")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
	p.Y.Min, p.Y.Max = 0, top*1.15
	for i, lanes := range sortedKeys(byLanes) {
		xy := byLanes[lanes]
		slices.SortFunc(xy, func(a, b plotter.XY) int { return compare(a.X, b.X) })
		if err := addLine(p, xy, 1, black, i, ""); err != nil {
			return Figure{}, false, err
		}
		if err := addPoints(p, xy, 3.5, black, i, analysis.Count(lanes, "lane")); err != nil {
			return Figure{}, false, err
		}
	}
	p.Legend.Top, p.Legend.Left = false, false
	lo, hi := extent(curve)
	p.X.Min, p.X.Max = lo/1.2, hi*1.2
	best := bestRate(curve)
	caption := fmt.Sprintf("Rate of reads of the model file by their size and the number at once, %s; n = %s. The most was %s MB/s, %s of %s KiB.",
		machine, analysis.Count(n, "point"), digits(best.BytesPerS/1e6, 4), analysis.Count(best.Lanes, "lane"), digits(float64(best.Size)/1024, 4))
	return figure(p, name, caption, plotHeight), true, nil
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

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func sortedKeys[V any](m map[int]V) []int {
	var out []int
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
