package reports

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/bmoe/bmoe/planner"
)

// ceilings are the ledger's accounts, lowest bar last.
var ceilings = []struct{ account, label string }{
	{planner.CeilingHoldable, "may be held"},
	{planner.CeilingLockable, "may be locked"},
}

// ledgerFigure shows what a plan holds against both ceilings as stacked bars.
// Parts carry numbers, so that neighbours of like grey are told apart.
func ledgerFigure(name, title string, ledger []planner.LedgerRow) (Figure, bool, error) {
	p := newPlot("Memory: "+title+", n = 1", "MiB", "")
	caption := "Memory a plan holds against its ceilings, " + title + ", MiB:"
	var labels names
	var ceiling *plotter.Line
	bars, widest := 0, 0.0
	for _, c := range ceilings {
		limit, ok := limitOf(ledger, c.account)
		if !ok {
			continue
		}
		y := float64(bars)
		bars++
		labels = append(labels, c.label)
		text, err := addBar(p, ledger, c.account, y)
		if err != nil {
			return Figure{}, false, err
		}
		caption += fmt.Sprintf(" %s: %s.", c.label, text)
		widest = max(widest, limit/mib)
		if ceiling, err = line(segment(limit/mib, y-0.42, limit/mib, y+0.42), 2, black, 1); err != nil {
			return Figure{}, false, err
		}
		p.Add(ceiling)
	}
	if bars == 0 {
		return Figure{}, false, nil
	}
	p.Legend.Add("the ceiling", ceiling)
	p.Y.Tick.Marker = labels
	p.Y.Min, p.Y.Max, p.X.Min = -0.6, float64(bars)-0.4+0.7*float64(bars), 0
	p.X.Max = max(p.X.Max, 1.03*widest)
	p.Legend.Left = true
	return figure(p, name, caption+" The dashed line is the ceiling.", 5*vg.Centimeter+vg.Length(bars)*2.6*vg.Centimeter), true, nil
}

// limitOf is an account's ceiling.
func limitOf(ledger []planner.LedgerRow, account string) (float64, bool) {
	for _, r := range ledger {
		if r.Ceiling == planner.CeilingLimit && r.Note == account && r.Bytes > 0 {
			return float64(r.Bytes), true
		}
	}
	return 0, false
}

// labelledShare is the narrowest part of a bar that has room for its number.
const labelledShare = 0.04

// addBar stacks an account's rows and returns them in words.
func addBar(p *plot.Plot, ledger []planner.LedgerRow, account string, y float64) (string, error) {
	at, n, text, whole := 0.0, 0, "", 0.0
	for _, r := range ledger {
		if r.Ceiling == account && r.Bytes > 0 {
			whole += float64(r.Bytes) / mib
		}
	}
	var where plotter.XYs
	var numbers []string
	for _, r := range ledger {
		if r.Ceiling != account || r.Bytes <= 0 {
			continue
		}
		n++
		to := at + float64(r.Bytes)/mib
		box, err := plotter.NewPolygon(plotter.XYs{{X: at, Y: y - 0.3}, {X: to, Y: y - 0.3}, {X: to, Y: y + 0.3}, {X: at, Y: y + 0.3}})
		if err != nil {
			return "", err
		}
		box.Color = shade(n, r.Row)
		box.Width = 0.8
		p.Add(box)
		number := fmt.Sprintf("%s%d", strings.ToUpper(account[:1]), n)
		label := fmt.Sprintf("%s  %s, %.1f", number, r.Row, float64(r.Bytes)/mib)
		p.Legend.Add(label, box)
		if to-at >= labelledShare*whole { // narrower parts are told by their order
			where, numbers = append(where, plotter.XY{X: (at + to) / 2, Y: y + 0.32}), append(numbers, number)
		}
		text += fmt.Sprintf(", %s %.1f", r.Row, float64(r.Bytes)/mib)
		at = to
	}
	if n == 0 {
		return "nothing", nil
	}
	l, err := plotter.NewLabels(plotter.XYLabels{XYs: where, Labels: numbers})
	if err != nil {
		return "", err
	}
	for i := range l.TextStyle {
		l.TextStyle[i].Font = sans(9)
		l.TextStyle[i].XAlign = -0.5
	}
	p.Add(l)
	return text[2:], nil
}

// shade alternates greys; what is free stays white.
func shade(n int, row string) color.Color {
	if row == "free" {
		return color.White
	}
	return []color.Gray{{Y: 90}, {Y: 200}, {Y: 140}, {Y: 225}, {Y: 50}, {Y: 170}}[n%6]
}
