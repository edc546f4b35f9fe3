package experiments

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

func planWith(point, lo, hi float64) planner.Plan {
	c := baseConfig()
	c.IOThreads, c.DenseWeights, c.ReleaseMmap, c.CacheMB = 4, "anon", true, 100
	return planner.Plan{
		Config:     c,
		Decisions:  []planner.Decision{{Knob: "cache-mb", Value: "100", Provenance: planner.Operator}, {Knob: "dense-weights", Value: "anon", Provenance: planner.Derived}},
		Prediction: planner.Prediction{DecodeSPerToken: planner.Estimate{Known: true, Point: point, Lo: lo, Hi: hi}},
	}
}

func TestPlanTrial(t *testing.T) {
	at := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		n             int
		point, lo, hi float64
		want          string
	}{
		{8, 0.05, 0.045, 0.055, "confirmed"},
		{8, 0.03, 0.025, 0.035, "refuted"},
		{8, 0.05, 0.05, 0.055, "undecided"},
		{3, 0.05, 0.045, 0.055, "undecided"},
		{8, 0.05, 0, 0, "void"},
	} {
		p := planWith(c.point, c.lo, c.hi)
		q := PlanTrial(p, record.NewPrediction(p.Prediction, at), c.n)
		q.At = at
		e := register(t, q)
		if len(e.Schedule) != c.n {
			t.Errorf("%d runs were asked for, %d are scheduled", c.n, len(e.Schedule))
		}
		v := conduct(t, e, &engine{rng: rand.New(rand.NewPCG(1, 2)), noise: 0.003})
		if got := v.Predictions[0]; got.Verdict != c.want {
			t.Errorf("%+v: %s (%s)", c, got.Verdict, got.Reason)
		}
	}
}

func TestPlanArms(t *testing.T) {
	p := planWith(1, 1, 1)
	p.Config.IOThreads = 2
	arms, allowed := PlanArms(p)
	var names []string
	for _, a := range arms {
		names = append(names, a.Name)
	}
	want := []string{"plan", "mmap", "without dense-weights", "without release-mmap", "without io-threads"} // cache-mb is pinned
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	if arms[1].Config.MoeStream || arms[1].Config.Model != p.Config.Model {
		t.Errorf("mmap arm: %+v", arms[1].Config)
	}
	if d := cmp.Diff([]string{"dense-weights", "release-mmap"}, allowed["without dense-weights"]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"release-mmap"}, allowed["without release-mmap"]); d != "" {
		t.Error(d)
	}
	for _, a := range arms[1:] {
		if d := config.Diff(&p.Config, &a.Config); len(d) == 0 {
			t.Errorf("%s is the plan", a.Name)
		}
	}
	if kept, left, err := Retain(append(arms, record.Arm{Name: "without ubatch"}), nil, MetricDecode); err != nil || len(kept) != len(arms) || cmp.Diff([]string{"ubatch"}, left) != "" {
		t.Errorf("%d arms kept, %v left out, %v", len(kept), left, err)
	}
	if kept, _, err := Retain(arms, []string{"io-threads", "mmap"}, MetricDecode); err != nil || len(kept) != 3 {
		t.Errorf("%d arms kept, %v", len(kept), err)
	}
	if _, _, err := Retain(arms, []string{"mmap", "ubatch"}, MetricDecode); err == nil || !strings.Contains(err.Error(), "mmap, dense-weights") {
		t.Errorf("%v", err)
	}
	q := lanesQuestion(t, 8, "1", "4")
	q.Kind, q.Lever, q.Arms, q.Baseline = KindEarns, "", arms, ArmMmap
	q.Terms.Favour, q.Terms.Allowed = ArmPlan, allowed
	e := register(t, q)
	v := Judge(e, steady(e, map[string]float64{"plan": 2, "without dense-weights": 2, "without io-threads": 1.5, "without release-mmap": 2.5}, nil))
	got := map[string]string{}
	for _, c := range v.Comparisons {
		if c.Arm != ArmPlan {
			t.Errorf("a comparison is for %s", c.Arm)
		}
		got[c.Baseline] = c.Verdict
	}
	if d := cmp.Diff(map[string]string{"mmap": "better", "without dense-weights": "equivalent", "without io-threads": "better", "without release-mmap": "worse"}, got); d != "" {
		t.Error(d)
	}
	v = Judge(e, steady(e, map[string]float64{"plan": 2}, func(r *record.StoredRun) {
		if r.Slot.Arm == "without io-threads" {
			r.Run.Config.Threads = 1
		}
	}))
	for _, c := range v.Comparisons {
		if (c.Verdict == "void") != (c.Baseline == "without io-threads") {
			t.Errorf("%s: %s (%s)", c.Baseline, c.Verdict, c.Reason)
		}
	}
}
