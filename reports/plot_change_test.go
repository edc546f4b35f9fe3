package reports

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/results/record"
)

// An arm that wins by 29 times leaves room to see another's few percent.
func TestArmsFarApartAreDrawnByRatio(t *testing.T) {
	e, _, v := testSweep()
	svg := func() string {
		t.Helper()
		f, ok, err := armsFigure(e, v, nil)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		raw, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if text := svg(); !strings.Contains(text, "change of the decode t/s, %") || strings.Contains(text, "log axis") {
		t.Error("arms close together are not drawn in percent")
	}
	v.Comparisons[0].Effect, v.Comparisons[0].Lo, v.Comparisons[0].Hi, v.Comparisons[0].Deltas = 28, 22, 34, nil
	if text := svg(); !strings.Contains(text, "= 1 (log axis)") || !strings.Contains(text, ">20<") {
		t.Error("arms far apart are not drawn on a log axis of ratios")
	}
	var axis changes
	axis.holdAll(v.Comparisons)
	of := func(a, b float64) float64 { return axis.at(b) - axis.at(a) }
	if share := of(-0.03, 0.05) / of(-0.03, 34); share < 0.02 {
		t.Errorf("the undecided arm's interval is %.4f of the axis", share)
	}
}

// The rate of what was lost is no number on a log axis.
func TestChangesThatCannotBeRatios(t *testing.T) {
	var axis changes
	axis.holdAll([]record.Comparison{{Pairs: 6, Effect: 20, Lo: -1, Hi: 40, Level: 0.9}})
	if axis.ratios() {
		t.Error("a rate of nothing has a logarithm")
	}
}

// No chart without its n.
func TestEveryPlotSaysItsN(t *testing.T) {
	n := 0
	for name, raw := range sampleFiles(t) {
		if filepath.Ext(name) == ".svg" {
			if n++; !strings.Contains(string(raw), "n = ") {
				t.Errorf("%s does not say its n", name)
			}
		}
	}
	if n == 0 {
		t.Error("no plot was drawn")
	}
}
