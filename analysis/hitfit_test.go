package analysis

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %.4f, want %.4f within %g", what, got, want, tolerance)
	}
}

// The figures of the published trace's LRU curve, eight budgets, unweighted.
func TestFitOfPublishedTrace(t *testing.T) {
	r := qwenRouting(t)
	budgets := FitBudgets(r)
	if len(budgets) != 8 || budgets[0] != 1000*mib {
		t.Fatalf("budgets %v, want the eight from 1000 to 8000 MiB", budgets)
	}
	points, curve := TraceHits(r, budgets, "qwen")
	fit, err := FitHits(points, curve, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "H0 k", fit.Line.Value, 3.99, 0.01)
	within(t, "H0 RMSE", fit.Line.RMSE, 0.096, 0.001)
	within(t, "H1 a", fit.Rivals[0].Value, 7.05, 0.01)
	within(t, "H1 RMSE", fit.Rivals[0].RMSE, 0.013, 0.001)
	within(t, "raw line k", fit.Raw.Value, 2.70, 0.01)
	within(t, "raw line RMSE", fit.Raw.RMSE, 0.225, 0.001)
	within(t, "H2 RMSE", fit.Rivals[1].RMSE, 0, 1e-9)
	if fit.Shape.Verdict != ShapeRefuted {
		t.Errorf("shape %+v, want refuted", fit.Shape)
	}
	if !strings.Contains(fit.Interval.Note, "one machine") {
		t.Errorf("interval %+v does not say that it is of one cluster", fit.Interval)
	}
}

// fitLine's minimum is the best of a fine grid.
func TestFitLineIsTheMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPoints(t)
		k := fitLine(p)
		got := rmse(p, func(f float64) float64 { return lineAt(k, f) })
		for i := range 1000 {
			try := 0.01 * math.Pow(1e5, float64(i)/1000)
			if s := rmse(p, func(f float64) float64 { return lineAt(try, f) }); s < got-1e-9 {
				t.Fatalf("k %v gives %v, but k %v gives %v", k, got, try, s)
			}
		}
	})
}

// No slope beats the fit, however fine the grid.
func TestFitSaturatingIsTheMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPoints(t)
		a := fitSaturating(p)
		got := rmse(p, func(f float64) float64 { return saturatingAt(a, f) })
		for i := range 1000 {
			try := 1e-3 * math.Pow(1e7, float64(i)/1000)
			if s := rmse(p, func(f float64) float64 { return saturatingAt(try, f) }); s < got-1e-6 {
				t.Fatalf("a %v gives %v, but a %v gives %v", a, got, try, s)
			}
		}
	})
}

func drawPoints(t *rapid.T) []HitPoint {
	var p []HitPoint
	for i := range rapid.IntRange(2, 8).Draw(t, "n") {
		p = append(p, HitPoint{
			F: rapid.Float64Range(0.02, 0.95).Draw(t, "f"), H: rapid.Float64Range(0.05, 1).Draw(t, "h"),
			Weight: rapid.Float64Range(0.1, 5).Draw(t, "w"), Cluster: strconv.Itoa(i % 3),
		})
	}
	p, err := cleanPoints(p)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Points on a shape give back its parameter with no residual; by hand:
// through the origin k = sum(xy)/sum(xx) = (0.1*0.3 + 0.2*0.5)/(0.01+0.04) = 2.6.
func TestFitKnownShapes(t *testing.T) {
	fs := []float64{0.05, 0.1, 0.15, 0.2, 0.3, 0.6}
	line, curve := []HitPoint{}, []HitPoint{}
	for _, f := range fs {
		line = append(line, HitPoint{F: f, H: math.Min(1, 3*f)})
		curve = append(curve, HitPoint{F: f, H: 1 - math.Exp(-5*f)})
	}
	onLine, err := FitHits(line, nil, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "k", onLine.Line.Value, 3, 1e-9)
	within(t, "RMSE", onLine.Line.RMSE, 0, 1e-9)
	within(t, "left out", onLine.Line.LeftOut, 0, 1e-9)
	within(t, "median ratio", onLine.Ratio, 3, 1e-9)
	if onLine.Shape.Verdict == ShapeRefuted {
		t.Errorf("shape %+v of points on the line", onLine.Shape)
	}
	onCurve, err := FitHits(curve, nil, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "a", onCurve.Rivals[0].Value, 5, 1e-6)
	within(t, "H1 RMSE", onCurve.Rivals[0].RMSE, 0, 1e-9)
	within(t, "raw k", fitRaw([]HitPoint{{F: 0.1, H: 0.3, Weight: 1}, {F: 0.2, H: 0.5, Weight: 1}}), 2.6, 1e-12)
}

func TestFitRefuses(t *testing.T) {
	for _, c := range []struct {
		points []HitPoint
		want   string
	}{
		{nil, "0 hit rates above 0"},
		{[]HitPoint{{F: 0.1, H: 0.5}, {F: 0.2, H: 0}}, "1 hit rates above 0"},
		{[]HitPoint{{F: 0, H: 0.5}, {F: 0.2, H: 0.1}}, "want f above 0"},
		{[]HitPoint{{F: 0.1, H: 1.5}, {F: 0.2, H: 0.1}}, "h from 0 to 1"},
		{[]HitPoint{{F: 0.1, H: math.NaN()}, {F: 0.2, H: 0.1}}, "h from 0 to 1"},
	} {
		if _, err := FitHits(c.points, nil, 0.95); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.points, err, c.want)
		}
	}
}

// Too few points must not be called a finding: 4 points in perfect order have
// p = 2/4! = 0.083.
func TestShapeHonesty(t *testing.T) {
	var p []HitPoint
	for i := range 4 {
		f := 0.02 + 0.02*float64(i)
		p = append(p, HitPoint{F: f, H: math.Sqrt(f)})
	}
	fit, err := FitHits(p, nil, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "p", fit.Shape.P, 2.0/24, 1e-12)
	if fit.Shape.Verdict != ShapeUndecided {
		t.Errorf("shape %+v from 4 points, want undecided", fit.Shape)
	}
}

// Simulated machines whose true k is 2: each kind of interval covers it about
// as often as it says.
func TestLineIntervalsCover(t *testing.T) {
	for _, c := range []struct {
		clusters int
		method   string
		trials   int
		atLeast  float64 // share of the trials
	}{
		{1, "HC3", 400, 0.88},
		{6, "signed-rank over clusters", 400, 0.93},
		{10, "cluster bootstrap", 40, 0.8}, // percentile intervals are narrow on 10 clusters
	} {
		rng := rand.New(rand.NewPCG(3, uint64(c.clusters)))
		covered := 0
		for range c.trials {
			var p []HitPoint
			for m := range c.clusters {
				own := 1.0
				if c.clusters > 1 {
					own = math.Exp(0.1 * rng.NormFloat64())
				}
				for i := range 6 {
					f := 0.05 + 0.06*float64(i)
					p = append(p, HitPoint{F: f, H: math.Min(1, math.Max(0.001, 2*own*f*(1+0.05*rng.NormFloat64()))), Cluster: strconv.Itoa(m)})
				}
			}
			clean, err := cleanPoints(p)
			if err != nil {
				t.Fatal(err)
			}
			iv := lineInterval(clean, fitLine(clean), 0.95)
			if iv.Method != c.method {
				t.Fatalf("%d clusters: method %q, want %q", c.clusters, iv.Method, c.method)
			}
			if iv.Lo <= 2 && 2 <= iv.Hi {
				covered++
			}
		}
		if share := float64(covered) / float64(c.trials); share < c.atLeast {
			t.Errorf("%s: %.3f of the intervals hold the truth, want at least %.2f", c.method, share, c.atLeast)
		}
	}
	iv := clusterInterval([][]HitPoint{{{F: 0.1, H: 0.2, Weight: 1}}, {{F: 0.1, H: 0.3, Weight: 1}}, {{F: 0.1, H: 0.25, Weight: 1}}}, 0.95)
	if iv.Level > 0.76 || !strings.Contains(iv.Note, "3 clusters cannot give 95.0 %") {
		t.Errorf("interval of 3 clusters %+v: it must own up to 75 %%", iv)
	}
}
