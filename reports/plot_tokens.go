package reports

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/plotter"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// tokensFigure shows where each decoded token's time went: waiting for reads,
// managing the cache, the rest.
func tokensFigure(r *record.StoredRun) (Figure, bool, error) {
	run := &r.Run
	n := len(run.TokenNS)
	if n < 2 {
		return Figure{}, false, nil
	}
	total, wait, manage := make(plotter.XYs, n), make(plotter.XYs, n), make(plotter.XYs, n)
	var sums [3]float64
	split := len(run.TokenWaitNS) == n && len(run.TokenManageNS) == n
	for i, ns := range run.TokenNS {
		ms := float64(ns) / 1e6
		total[i] = plotter.XY{X: float64(i), Y: ms}
		sums[0] += ms
		if split {
			m, w := float64(run.TokenManageNS[i])/1e6, float64(run.TokenWaitNS[i])/1e6
			manage[i], wait[i] = plotter.XY{X: float64(i), Y: m}, plotter.XY{X: float64(i), Y: m + w}
			sums[1], sums[2] = sums[1]+w, sums[2]+m
		}
	}
	p := newPlot(fmt.Sprintf("Time of each token, run %s, n = %d tokens", short(run.RunID), n), "decoded token", "ms")
	p.Y.Min = 0
	layers := []struct {
		xy   plotter.XYs
		fill color.Gray
		name string
		on   bool
	}{
		{total, color.Gray{Y: 225}, "compute and all else", true},
		{wait, color.Gray{Y: 140}, "waiting for reads", split},
		{manage, color.Gray{Y: 40}, "managing the cache", split},
	}
	top := 0.0
	for _, q := range total {
		top = max(top, q.Y)
	}
	for _, l := range layers {
		if !l.on {
			continue
		}
		area, err := line(l.xy, 0.6, black, 0)
		if err != nil {
			return Figure{}, false, err
		}
		area.FillColor = l.fill
		p.Add(area)
		p.Legend.Add(l.name, area)
	}
	p.Y.Max = top * 1.3
	caption := fmt.Sprintf("Time of each decoded token of run %s (%s; %s), n = %s, mean %s ms", short(run.RunID), orWord(run.Model.Name, short(run.Model.ID)),
		settings(&run.Config), analysis.Count(n, "token"), digits(sums[0]/float64(n), 4))
	if split {
		caption += fmt.Sprintf(", of it waiting for reads %s, managing the cache %s", digits(sums[1]/float64(n), 3), digits(sums[2]/float64(n), 3))
	}
	return figure(p, "tokens-"+short(run.RunID), caption+".", plotHeight), true, nil
}
