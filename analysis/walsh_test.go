package analysis

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Every Walsh average is found by its rank as if they had been listed, ties,
// zeros and tiny values among them.
func TestWalshAtIsTheListedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{-1, -0.5, 0, 0.25, 1e-300, -3e-12}))
		d := rapid.SliceOfN(value, 1, 30).Draw(t, "d")
		w := WalshAverages(d)
		s := slices.Sorted(slices.Values(d))
		for k := range w {
			if got := walshAt(s, k+1); got != w[k] {
				t.Fatalf("rank %d of %v: %v, listed %v", k+1, d, got, w[k])
			}
		}
	})
}

// An interval of many differences is the one their listed averages give.
func TestSignedRankIntervalOfMany(t *testing.T) {
	d := make([]float64, maxListed+200)
	for i := range d {
		d[i] = math.Sin(float64(i*i)) + 0.1
	}
	got, ok := SignedRankInterval(d, 0.95)
	w := WalshAverages(d)
	if !ok || got.Lo != w[got.Cut-1] || got.Hi != w[len(w)-got.Cut] {
		t.Errorf("%+v, listed %v to %v", got, w[got.Cut-1], w[len(w)-got.Cut])
	}
	if got.Level < 0.95 || 1-2*TailProbability(len(d), got.Cut) >= 0.95 {
		t.Errorf("cut %d attains %v and is not the last that attains 0.95", got.Cut, got.Level)
	}
}
