package planner

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestPrefillPrice: a layer reads 10 s, a token computes 1 s a layer.
func TestPrefillPrice(t *testing.T) {
	base := PrefillTerms{TokenS: 4, ExpertsS: 3, ReadsS: 40, Layers: 4, Experts: 8, Used: 2, Parts: 3, Slots: 1, Width: 100, Scale: 1}
	one, two, over := base, base, base
	two.Slots, over.Overlap = 2, true
	resident := base
	resident.Slots = 0
	for _, tc := range []struct {
		name   string
		t      PrefillTerms
		tokens int64
		want   float64
	}{
		{"nothing streamed", resident, 10, 40},
		{"one token reads its picks", one, 1, 4 + 0.25*40},
		{"a wide pass reads everything", one, 100, 400 + 40},
		{"overlapped, bound by reads", over, 1, 4 - 3 + 10 + 1},
		{"two slots, bound by compute", two, 100, 10 + 3*100 + 100},
		{"two passes", one, 200, 2 * 440},
	} {
		if got := tc.t.Seconds(tc.tokens); math.Abs(got-tc.want) > 1e-6 {
			t.Errorf("%s: %g s, want %g", tc.name, got, tc.want)
		}
	}
}

// A longer prompt never computes fewer tokens a second up to the graph's width,
// and one of full width is the figure that is printed.
func TestPrefillAt(t *testing.T) {
	p := loadPlan(t, "vm-limit-40").Prediction
	full, ok := p.PrefillAt(p.PrefillTerms.Width)
	if !ok {
		t.Fatal("no price")
	}
	wantAbout(t, "a full pass", full.Point, p.PrefillTokensPerS.Point, 1e-9)
	short, _ := p.PrefillAt(10)
	if short.Point > full.Point/4 {
		t.Errorf("10 tokens at %.3g t/s, a full pass at %.3g: a short prompt reads nearly as much", short.Point, full.Point)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, p.PrefillTerms.Width-1).Draw(t, "tokens")
		a, b := p.PrefillTerms.Seconds(n), p.PrefillTerms.Seconds(n+1)
		if b < a*(1-0.2) {
			t.Fatalf("%d tokens %.4g s, one more %.4g s", n, a, b)
		}
	})
	if _, ok := (&Prediction{}).PrefillAt(10); ok {
		t.Error("a plan without a price was priced")
	}
}

// Prompts that took twice their price are predicted to.
func TestObservePrefill(t *testing.T) {
	c := readCase(t, "testdata/plans/vm-limit-40.txt")
	plan := planOf(t, c)
	was, _ := plan.Prediction.PrefillAt(20)
	c.profile.Observe([]Observation{{Config: plan.Config, PromptTokens: 20, PrefillTokensPerS: was.Point / 2}})
	after := planOf(t, c)
	now, _ := after.Prediction.PrefillAt(20)
	wantAbout(t, "after", now.Point, was.Point/2, 1e-9)
}
