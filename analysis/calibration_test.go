package analysis

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// By hand: e = ln 1.1, 0, -ln 2; median 0, median |e| = ln 1.1.
func TestCalibrateByHand(t *testing.T) {
	list := []Scored{
		{Predicted: 1, Lo: 0.9, Hi: 1.2, Measured: 1.1, Baseline: 2.2},
		{Predicted: 2, Lo: 1.9, Hi: 2.1, Measured: 2, Baseline: 2},
		{Predicted: 4, Lo: 3, Hi: 5, Measured: 2},
		{Predicted: 0, Measured: 5}, // no prediction: left out
		{Predicted: 5, Measured: 0}, // no measurement: left out
	}
	c := Calibrate(list, 0.9, 0.95)
	if c.N != 3 || c.Stated != 3 || c.Covered != 2 || c.Baseline.N != 2 {
		t.Errorf("counts %+v", c)
	}
	within(t, "bias", c.Bias, 0, 1e-12)
	within(t, "median |e|", c.MedianAbs, math.Log(1.1), 1e-12)
	if c.Within != [3]int{2, 2, 3} {
		t.Errorf("within 1.1, 1.25, 2: %v, want 2 2 3", c.Within)
	}
	// The third measurement is ln(3/2) under its interval: 2/0.1 times that.
	want := (math.Log(1.2/0.9) + math.Log(2.1/1.9) + math.Log(5.0/3) + 20*math.Log(1.5)) / 3
	within(t, "interval score", c.Winkler, want, 1e-12)
	within(t, "beats", Beats(list), (math.Log(2)/2)/(math.Log(1.1)/2), 1e-12)
	if got := Beats(list[2:3]); got != 0 {
		t.Errorf("beats without a baseline: %v, want 0", got)
	}
}

// Independent check: the bounds are where the binomial tails are alpha/2.
func TestClopperPearsonIsExact(t *testing.T) {
	for _, c := range []struct{ k, n int }{{0, 10}, {1, 10}, {5, 10}, {9, 10}, {10, 10}, {17, 20}} {
		iv := ClopperPearson(c.k, c.n, 0.95)
		if c.k > 0 {
			upper := 1 - distuv.Binomial{N: float64(c.n), P: iv.Lo}.CDF(float64(c.k-1))
			within(t, "tail at lo", upper, 0.025, 1e-6)
		} else {
			within(t, "lo", iv.Lo, 0, 0)
		}
		if c.k < c.n {
			within(t, "tail at hi", distuv.Binomial{N: float64(c.n), P: iv.Hi}.CDF(float64(c.k)), 0.025, 1e-6)
		} else {
			within(t, "hi", iv.Hi, 1, 0)
		}
	}
	if iv := ClopperPearson(0, 0, 0.95); iv.Lo != 0 || iv.Hi != 1 {
		t.Errorf("no trials: %+v, want 0 to 1", iv)
	}
}

// A predictor that is right on average with honest intervals scores as such,
// and beats both a biased one and one that hides behind wide intervals.
func TestCalibrateRanksPredictors(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	make3 := func(bias, width float64) []Scored {
		var out []Scored
		for range 400 {
			truth := math.Exp(rng.NormFloat64())
			p := truth * math.Exp(bias)
			half := width * 1.645
			out = append(out, Scored{Predicted: p, Lo: p * math.Exp(-half), Hi: p * math.Exp(half), Measured: truth * math.Exp(0.1*rng.NormFloat64()), Baseline: 1})
		}
		return out
	}
	honest, biased, wide := Calibrate(make3(0, 0.1), 0.9, 0.95), Calibrate(make3(0.3, 0.1), 0.9, 0.95), Calibrate(make3(0, 0.5), 0.9, 0.95)
	within(t, "honest bias", honest.Bias, 0, 0.02)
	within(t, "biased bias", biased.Bias, -0.3, 0.02)
	within(t, "spread", honest.Spread, 0.1, 0.02)
	if honest.CoverageCI.Lo > 0.9 || honest.CoverageCI.Hi < 0.9 {
		t.Errorf("coverage %v to %v does not hold 0.9", honest.CoverageCI.Lo, honest.CoverageCI.Hi)
	}
	if !(honest.Winkler < biased.Winkler && honest.Winkler < wide.Winkler) {
		t.Errorf("interval scores: honest %v, biased %v, wide %v", honest.Winkler, biased.Winkler, wide.Winkler)
	}
	if honest.MedianAbs >= honest.Baseline.MedianAbs {
		t.Errorf("median |e| %v, baseline %v", honest.MedianAbs, honest.Baseline.MedianAbs)
	}
}
