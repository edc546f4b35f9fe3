package planner

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/planner/config"
)

// The tests of this file are named for what users of other programs reported
// and must not happen here. docs/reliability.md lists them all.

// A plan that says "does not fit" leaves a configuration that takes none of
// the memory it was refused.
func TestFieldDoesNotFitHoldsNothing(t *testing.T) {
	declined := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProfile(rt, 80)
		p.Memory.Headroom = MeasuredFact(rapid.Int64Range(1<<20, 1<<30).Draw(rt, "little"), 0, "drawn")
		plan := mustMake(rt, p, Pins{})
		if !plan.Declined {
			return
		}
		declined++
		c, def := plan.Config, config.Default()
		if c.MoeStream || c.CacheMB != def.CacheMB || c.CachePin || c.DenseWeights != def.DenseWeights || c.PrefillDevice != def.PrefillDevice {
			rt.Fatalf("a declined plan arms %v", config.Diff(&def, &c))
		}
		for _, row := range []string{"expert cache", "other weights", "prefill slots", "prefill device"} {
			for _, r := range plan.Ledger {
				if r.Row == row && r.Ceiling != CeilingLimit && r.Bytes != 0 {
					rt.Fatalf("a declined plan holds %d bytes as %s", r.Bytes, row)
				}
			}
		}
	})
	if declined == 0 {
		t.Error("no plan declined: nothing was tested")
	}
}

// One flag typed by hand leaves every other knob to the planner, and a stage
// whose place it takes is named.
func TestFieldHandFlagDoesNotDisablePlanning(t *testing.T) {
	c := readCase(t, "testdata/plans/worked-laptop-8.9gb.txt")
	free := planOf(t, c)
	stages := map[string]string{"cache-mb": "cache-floor-pinned", "dense-weights": "dense-policy-pinned", "ubatch": "widest-graph-pinned", "moe-stream": "regime-pinned", "repack": "repack-pinned"}
	for knob, value := range map[string]string{
		"cache-mb": "900", "dense-weights": "anon", "ubatch": "256", "moe-stream": "on", "io-threads": "2", "threads": "3",
		"prefill-device": "none", "repack": "off", "overlap": "off", "expert-prefetch": "off", "odirect": "off", "cache-policy": "lru", "cache-pin": "off",
	} {
		t.Run(knob, func(t *testing.T) {
			pins := Pins{knob: value}
			for k, v := range c.pins {
				pins[k] = v
			}
			plan := planOf(t, planCase{profile: c.profile, pins: pins})
			for _, d := range free.Decisions {
				if _, ok := config.Lookup(d.Knob); !ok || d.Knob == knob {
					continue
				}
				// A lock that is refused needs no stepping down.
				if got := decision(plan, d.Knob); got.Knob == "" && (knob != "cache-pin" || d.Knob != "cache-pin-fit") {
					t.Errorf("%s=%s: nothing is decided about %s any more", knob, value, d.Knob)
				} else if _, pinned := pins[d.Knob]; !pinned && got.Provenance == Operator {
					t.Errorf("%s=%s: %s is said to be the caller's", knob, value, d.Knob)
				}
			}
			if topic := stages[knob]; topic != "" {
				wantTopic(t, plan, topic)
			}
			if !plan.Prediction.DecodeSPerToken.Known {
				t.Errorf("%s=%s: no prediction: %s", knob, value, plan.Prediction.DecodeSPerToken.Basis)
			}
		})
	}
}

// A cache is as large as it is useful: never beyond the experts themselves, and
// not beyond the size from which the measured curve is flat.
func TestFieldLargerCacheThanUsefulIsNotChosen(t *testing.T) {
	c := readCase(t, "testdata/plans/hits-measured-curve.txt")
	c.profile.Hits.Curves = MeasuredFact([]HitCurve{{Policy: "a2d", Points: []HitPoint{
		{Bytes: 1 << 30, Hit: 0.6}, {Bytes: 2 << 30, Hit: 0.9}, {Bytes: 3 << 30, Hit: 0.9}, {Bytes: 8 << 30, Hit: 0.9},
	}}}, 0, "drawn")
	plan := planOf(t, c)
	if mb := plan.Config.CacheMB; mb < 2<<10 || mb > 2300 {
		t.Errorf("cache %d MiB where the curve is flat from 2048 MiB on: %s", mb, decision(plan, "cache-mb").Reason)
	}
	if h := plan.Prediction.HitRate.Point; h < 0.8999 {
		t.Errorf("hit rate %g: the cap lost hits", h)
	}
	if !strings.Contains(decision(plan, "cache-mb").Reason, "flat") {
		t.Errorf("reason %q", decision(plan, "cache-mb").Reason)
	}

	whole := readCase(t, "testdata/plans/worked-laptop-8.9gb.txt")
	whole.profile.Memory.Available = MeasuredFact(int64(200<<30), 0, "drawn")
	whole.pins["moe-stream"], whole.pins["cache-pin"] = "on", "off"
	plan = planOf(t, whole)
	most := whole.profile.Model.RoutedBytes.Value*11/10/mib + 1
	if mb := int64(plan.Config.CacheMB); mb <= 0 || mb > most {
		t.Errorf("cache %d MiB for experts of %d MiB", mb, most)
	}
}

// Memory that a device shares with the host is counted once: layers are not
// placed on it, and its buffers come out of the one pool.
func TestFieldUnifiedMemoryIsCountedOnce(t *testing.T) {
	plan := loadPlan(t, "worked-unified-counted-once")
	wantKnobs(t, plan, "moe-stream", "true")
	wantTopic(t, plan, "placement-declined")
	if plan.Config.GPULayers != 0 || plan.Config.OverrideTensor != "" {
		t.Errorf("%d layers placed on memory that is the host's", plan.Config.GPULayers)
	}
	var held, limit int64
	for _, r := range plan.Ledger {
		switch r.Ceiling {
		case CeilingHoldable:
			held += r.Bytes
		case CeilingLimit:
			if r.Note == CeilingHoldable {
				limit = r.Bytes
			}
		}
	}
	if held > limit {
		t.Errorf("%d bytes held under a ceiling of %d", held, limit)
	}
}

// Where reads past the page cache are slower than reads through it, they are
// not used, and the plan is priced at the rate that is.
func TestFieldSlowerODirectIsNotUsed(t *testing.T) {
	c := readCase(t, "testdata/plans/worked-laptop-8.9gb.txt")
	c.profile.Storage.Buffered = MeasuredFact(9e9, 0.03, "drawn")
	plan := planOf(t, c)
	wantKnobs(t, plan, "odirect", "false")
	wantTopic(t, plan, "odirect-slower")
	if plan.Config.ODirect {
		t.Error("the configuration still reads past the page cache")
	}
	fast := loadPlan(t, "worked-laptop-8.9gb").Prediction.DecodeSPerToken.Point
	if slow := plan.Prediction.DecodeSPerToken.Point; slow >= fast {
		t.Errorf("%g s a token with 9 GB/s through the page cache, %g s with 6.2 GB/s past it", slow, fast)
	}
	// Inside the spread of the two it is no finding.
	c.profile.Storage.Buffered = MeasuredFact(6.3e9, 0.03, "drawn")
	wantKnobs(t, planOf(t, c), "odirect", "true")
}

// Small experts stream: requests under the smallest size the drive was
// measured at are priced, not refused.
func TestFieldSmallExpertsStream(t *testing.T) {
	c := readCase(t, "testdata/plans/worked-laptop-8.9gb.txt")
	m := &c.profile.Model
	classes := slices.Clone(m.Slices.Value)
	for i := range classes {
		classes[i].Bytes = 24 << 10
	}
	shrink := func(f *Fact[int64]) { f.Value = f.Value * (24 << 10) / m.Slices.Value[0].Bytes }
	shrink(&m.TokenCycle)
	shrink(&m.LayerExperts)
	shrink(&m.RoutedBytes)
	m.Slices.Value = classes
	c.profile.Memory.Available = MeasuredFact(int64(2200<<20), 0, "drawn")
	plan := planOf(t, c)
	wantKnobs(t, plan, "moe-stream", "true")
	if at := plan.Prediction.DecodeSPerToken; plan.Declined || !at.Known || !(at.Point > 0 && at.Point < 1) || plan.Config.CacheMB <= 0 {
		t.Errorf("declined %v, cache %d MiB, prediction %+v", plan.Declined, plan.Config.CacheMB, plan.Prediction.DecodeSPerToken)
	}
}
