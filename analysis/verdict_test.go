package analysis

import (
	"math"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	margin := LogRatio(0.02)
	e := func(lo, mid, hi float64, pos, neg int) Effect {
		return Effect{N: 8, Estimate: mid, Interval: Interval{Lo: lo, Hi: hi, Level: 0.961}, Enough: true, Want: 0.95, Signs: Signs{pos, neg, 0}}
	}
	few := e(0.1, 0.2, 0.3, 5, 0)
	few.N, few.Enough, few.Level = 5, false, 0.9375
	for _, c := range []struct {
		name   string
		e      Effect
		pHolm  float64
		want   Verdict
		reason string
	}{
		{"better", e(0.05, 0.1, 0.15, 8, 0), 0.01, Better, "above the 2 % margin"},
		{"worse", e(-0.15, -0.1, -0.05, 0, 8), 0.01, Worse, "below the 2 % margin"},
		{"equivalent", e(-0.01, 0, 0.01, 4, 4), 1, Equivalent, "within 2 %"},
		{"equivalent though not zero", e(0.005, 0.01, 0.015, 8, 0), 0.01, Equivalent, "within 2 %"},
		{"small", e(0.005, 0.03, 0.05, 8, 0), 0.01, Small, "direction is known"},
		{"small by Holm", e(-0.001, 0.03, 0.05, 8, 0), 0.04, Small, "Holm"},
		{"undecided", e(-0.01, 0.02, 0.05, 6, 2), 0.3, Undecided, "holds both"},
		{"signs disagree", e(0.05, 0.1, 0.15, 6, 2), 0.01, Better, "sign count alone (6 of 8 pairs)"},
		{"five pairs", few, 0.0625, Undecided, "5 pairs can give a 93.8 % interval at most; 6 are the fewest for 95.0 %"},
	} {
		got, reason := c.e.Judge(margin, 0.05, c.pHolm)
		if got != c.want || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, reason, c.want, c.reason)
		}
	}
}

func TestJudgeBand(t *testing.T) {
	e := NewEffect([]float64{.09, .10, .11, .095, .105, .1, .102, .098}, 0.95)
	for _, c := range []struct {
		lo, hi float64
		want   Verdict
	}{
		{.05, .15, Confirmed},
		{.2, .3, Refuted},
		{-.1, 0, Refuted},
		{.1, .2, Undecided},
		{.05, math.Inf(1), Confirmed},
		{math.Inf(-1), .05, Refuted},
	} {
		if got, why := e.JudgeBand(c.lo, c.hi); got != c.want {
			t.Errorf("[%v, %v]: %s (%s), want %s", c.lo, c.hi, got, why, c.want)
		}
	}
	if got, _ := NewEffect([]float64{.1, .1, .1}, 0.95).JudgeBand(0, 1); got != Undecided {
		t.Errorf("three pairs: %s", got)
	}
}

func TestSentence(t *testing.T) {
	l := LogRatio
	e := Effect{N: 8, Estimate: l(0.123), Interval: Interval{Lo: l(0.098), Hi: l(0.149), Level: 0.951}}
	want := "io-threads 4 decodes 12.3 % faster than 1 (95.1 % CI 9.8 to 14.9 %, 8 pairs)"
	if got := e.Sentence("io-threads 4", VerbDecode, "1"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e = Effect{N: 6, Estimate: l(-0.1), Interval: Interval{Lo: l(-0.14), Hi: l(-0.08), Level: 0.96875}}
	want = "io-threads 1 decodes 10.0 % slower than 4 (96.9 % CI 8.0 to 14.0 %, 6 pairs)"
	if got := e.Sentence("io-threads 1", VerbDecode, "4"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e = Effect{N: 8, Estimate: l(-0.01), Interval: Interval{Lo: l(-0.04), Hi: l(0.02), Level: 0.961}}
	want = "repack on loads 1.0 % slower than off (96.1 % CI 4.0 % slower to 2.0 % faster, 8 pairs)"
	if got := e.Sentence("repack on", VerbLoad, "off"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
