package planner

import (
	"testing"

	"github.com/bmoe/bmoe/planner/config"
)

// TestObserveClosesTheLoop: a run that took longer than its priced terms makes
// the next prediction of the same run equal to what was measured.
func TestObserveClosesTheLoop(t *testing.T) {
	c := readCase(t, "testdata/plans/vm-limit-40.txt")
	for _, name := range []string{"overhead.per-layer", "overhead.per-lookup", "overhead.per-node", "overhead.nodes"} {
		if err := c.amend("forget", name, ""); err != nil {
			t.Fatal(err)
		}
	}
	before := planOf(t, c)
	hit := 1 - before.Prediction.BytesPerToken.Point/float64(c.profile.Model.TokenCycle.Value)
	measured := before.Prediction.DecodeSPerToken.Point + 0.016
	c.profile.Observe([]Observation{{Config: before.Config, DecodeSPerToken: measured, ByteHitRate: hit, CacheRefused: 5 << 20}})
	after := planOf(t, c)
	wantAbout(t, "predicted after one run", after.Prediction.DecodeSPerToken.Point, measured, 1e-9)
	wantAbout(t, "per layer", c.profile.Overheads.PerLayer.Value, 0.001, 1e-6)
	if c.profile.Locks.CacheRefused.OK() {
		t.Error("a run without a lock taught a refusal")
	}
}

func TestObserveReadsRefusals(t *testing.T) {
	var p Profile
	cfg := config.Default()
	cfg.MoeStream, cfg.CachePin, cfg.DenseWeights = true, true, "pinned"
	p.Observe([]Observation{{Config: cfg, CacheRefused: 7, DenseRefused: 9}})
	if p.Locks.CacheRefused.Value != 7 || p.Locks.DenseRefused.Value != 9 {
		t.Errorf("refusals %+v", p.Locks)
	}
}

func TestObserveNothing(t *testing.T) {
	var p Profile
	p.Observe(nil)
	if p.Overheads.PerLayer.OK() || p.Locks.CacheRefused.OK() {
		t.Error("no run taught something")
	}
}

// TestDecodeAt: asked again at its own hit rate a prediction is unchanged, and
// more hits never cost more.
func TestDecodeAt(t *testing.T) {
	p := loadPlan(t, "vm-limit-40").Prediction
	same, ok := p.DecodeAt(p.HitRate.Point)
	if !ok {
		t.Fatal("a priced plan has no terms")
	}
	wantAbout(t, "at its own hit rate", same, p.DecodeSPerToken.Point, 0.02)
	last := 1e9
	for hit := 0.0; hit <= 1; hit += 0.05 {
		v, _ := p.DecodeAt(hit)
		if v > last+1e-12 {
			t.Errorf("%.4g s at a hit rate of %.2f, %.4g before", v, hit, last)
		}
		last = v
	}
	none := loadPlan(t, "io-unprobed").Prediction
	if _, ok := none.DecodeAt(0.5); ok {
		t.Error("a plan without a price was priced")
	}
}
