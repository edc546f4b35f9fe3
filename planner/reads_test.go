package planner

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/planner/config"
)

func TestBinomialIsAShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, p := rapid.IntRange(1, 16).Draw(t, "n"), rapid.Float64Range(0, 1).Draw(t, "p")
		var sum, mean float64
		for m := range n + 1 {
			sum += binomial(n, m, p)
			mean += float64(m) * binomial(n, m, p)
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(mean-float64(n)*p) > 1e-9 {
			t.Fatalf("sum %g, mean %g of %g", sum, mean, float64(n)*p)
		}
	})
}

// Two picks a layer, one projection after the other, each read 3 ms a slice,
// each matmul 2 ms, on one lane. One missing expert of two projections: the
// first read is waited for (3), the second lands at 6, one after the first
// matmul ended at 5.
func TestWaitOfALayer(t *testing.T) {
	r := layerReads{layers: 1, done: [][]float64{{0, 0}, {3, 6}, {6, 12}}, busy: []float64{0, 6, 12}}
	for _, tc := range []struct {
		m       int
		c       float64
		overlap bool
		want    float64
	}{
		{0, 2, true, 0}, {1, 2, true, 4}, {1, 2, false, 6}, {1, 10, true, 3}, {2, 2, true, 10}, {2, 0, true, 12},
	} {
		if got := r.wait(tc.m, tc.c, 1, tc.overlap); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%d missing, matmul %g, overlap %v: waits %g, want %g", tc.m, tc.c, tc.overlap, got, tc.want)
		}
	}
}

// With few misses nearly all of their reads are waited for, although in the mean
// they would hide behind the matmuls of layers that miss nothing.
func TestTheMeanHidesNothing(t *testing.T) {
	r := layerReads{layers: 10, done: [][]float64{{0, 0, 0}, {1, 2, 3}}, busy: []float64{0, 3}}
	tk := terms{experts: 10 * 3 * 10, reads: r, miss: 0.1, overlap: true}
	if got := tk.wait(); math.Abs(got-10*0.1*1) > 1e-9 {
		t.Errorf("waits %g, want one first read for each layer that misses, 1", got)
	}
}

func TestScaleForFindsTheScale(t *testing.T) {
	st := pricingCase(t)
	for _, scale := range []float64{0.4, 1, 2.5} {
		tk := st.streamTerms(0.4, st.weightRate(false), false)
		tk.ioScale = scale
		want := tk.wait()
		tk.ioScale = 0
		if got := tk.scaleFor(want); math.Abs(got/scale-1) > 1e-6 {
			t.Errorf("scale %g found as %g", scale, got)
		}
	}
}

func pricingCase(t *testing.T) *planning {
	t.Helper()
	c := readCase(t, "testdata/plans/vm-limit-40.txt")
	cfg := planOf(t, c).Config
	return c.profile.pricing(cfg)
}

// The weights that are read whole have a rate of their own, where one was taken.
func TestDenseWeightsHaveTheirOwnRate(t *testing.T) {
	st := pricingCase(t)
	w := st.weightRate(false)
	plain := st.streamTerms(0, w, false)
	st.p.Host.Dense = MeasuredFact(w*2, 0, "")
	twice := st.streamTerms(0, w, false)
	if math.Abs(twice.dense*2-plain.dense) > 1e-12 || twice.experts != plain.experts {
		t.Errorf("dense %g then %g, experts %g then %g", plain.dense, twice.dense, plain.experts, twice.experts)
	}
}

// TestRunsTellWaitFromCompute: a run whose reads took twice as long and whose
// layers took half a millisecond more teaches both, each by itself.
func TestRunsTellWaitFromCompute(t *testing.T) {
	c := readCase(t, "testdata/plans/vm-limit-40.txt")
	for _, name := range []string{"overhead.per-layer", "overhead.per-lookup"} {
		if err := c.amend("forget", name, ""); err != nil {
			t.Fatal(err)
		}
	}
	cfg := planOf(t, c).Config
	st := c.profile.pricing(cfg)
	tk := st.streamTerms(0.4, st.weightRate(st.repacked()), st.repacked())
	tk.ioScale = 2
	run := Observation{
		Config: cfg, ByteHitRate: 0.6, Split: true, WaitSPerToken: tk.wait(),
		DecodeSPerToken: tk.total() + 0.0005*float64(st.m.layers),
	}
	c.profile.Observe([]Observation{run})
	o := &c.profile.Overheads
	wantAbout(t, "reads", o.ReadsScale.Value, 2, 1e-6)
	wantAbout(t, "per layer", o.PerLayer.Value, 0.0005, 1e-6)
	got, ok := c.profile.priced(run)
	if !ok {
		t.Fatal("no price")
	}
	wantAbout(t, "priced again", got, run.DecodeSPerToken, 1e-6)
	if h := o.Residual.Value; !o.Residual.OK() || h <= 0 || h > 0.5 {
		t.Errorf("residual %+v", o.Residual)
	}
	topics := map[string]bool{}
	for _, d := range planOf(t, c).Decisions {
		topics[d.Topic] = true
	}
	if !topics["corrected-reads"] || !topics["corrected-layers"] {
		t.Errorf("the plan does not show its corrections: %v", topics)
	}
}

// Runs that scatter widen the interval, runs that agree narrow it.
func TestResidualFollowsTheRuns(t *testing.T) {
	c := readCase(t, "testdata/plans/vm-limit-40.txt")
	cfg := planOf(t, c).Config
	runs := func(factors ...float64) float64 {
		p := c.profile
		st := p.pricing(cfg)
		base := st.streamTerms(0.4, st.weightRate(st.repacked()), st.repacked()).total()
		var list []Observation
		for _, f := range factors {
			list = append(list, Observation{Config: cfg, ByteHitRate: 0.6, DecodeSPerToken: base * f})
		}
		p.Observe(list)
		return p.Overheads.Residual.Value
	}
	one, same, apart := runs(1.2), runs(1.2, 1.2, 1.2, 1.2, 1.2), runs(0.6, 0.8, 1.2, 1.6, 2)
	if same >= one || apart <= one {
		t.Errorf("one run %.3f, five equal %.3f, five apart %.3f", one, same, apart)
	}
}

func TestStudentT90(t *testing.T) {
	// Values from published tables.
	for _, tc := range [][2]float64{{1, 6.314}, {3, 2.353}, {7, 1.895}, {12, 1.782}, {25, 1.708}, {1e6, 1.645}} {
		if got := studentT90(tc[0]); math.Abs(got-tc[1]) > 0.004 {
			t.Errorf("df %g: %.4f, want %.3f", tc[0], got, tc[1])
		}
	}
}

// A device the last run had to do without is not armed again until a run gets it.
func TestALostDeviceIsRemembered(t *testing.T) {
	p := Profile{Devices: []Device{{Name: "GPU0"}, {Name: "GPU1"}}}
	cfg := config.Default()
	bad := Observation{Config: cfg, Device: "GPU0", DeviceFailed: true, DeviceWhy: "no memory"}
	good := Observation{Config: cfg, Device: "GPU0"}
	p.Observe([]Observation{good, bad})
	if Ask(p.Devices[0].SetsUp) != No || p.Devices[0].SetsUp.Reason != "no memory" || Ask(p.Devices[1].SetsUp) != DontKnow {
		t.Errorf("%+v", p.Devices)
	}
	st := &planning{p: &p, pol: DefaultPolicy()}
	if _, why := st.weighPrefill(&p.Devices[0]); why != "the last run that asked for it did without: no memory" {
		t.Errorf("weighed: %q", why)
	}
	p.Observe([]Observation{bad, good})
	if Ask(p.Devices[0].SetsUp) != Yes {
		t.Errorf("%+v", p.Devices[0].SetsUp)
	}
}

// A token of a mapped model costs its matmul beside the faults: without the
// matmul's rate there is no bound to state.
func TestAMappingWithoutTheMatmulHasNoPrice(t *testing.T) {
	c := readCase(t, "testdata/plans/worked-laptop-3gb-unmeasured-drive.txt")
	if err := c.read("fact storage.refault 45MB/s"); err != nil {
		t.Fatal(err)
	}
	if plan := planOf(t, c); !plan.Declined || !plan.Prediction.DecodeSPerToken.Known {
		t.Errorf("declined %v, a token takes %+v", plan.Declined, plan.Prediction.DecodeSPerToken)
	}
	if err := c.read("forget host.narrow"); err != nil {
		t.Fatal(err)
	}
	if e := planOf(t, c).Prediction.DecodeSPerToken; e.Known || !strings.Contains(e.Basis, "one-token matmul") {
		t.Errorf("a price without the matmul: %+v", e)
	}
}
