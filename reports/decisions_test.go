package reports

import (
	"math"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// Sweeps say on where plans say true.
func TestDecisionOnASwitch(t *testing.T) {
	e := record.Experiment{Baseline: "off", Arms: []record.Arm{{Name: "off", Value: "off"}, {Name: "on", Value: "on"}}}
	v := record.Verdict{Comparisons: []record.Comparison{{Arm: "on", Baseline: "off", Pairs: 8, Effect: 0.25, Lo: 0.1, Hi: 0.5, Verdict: "better", Sentence: "on is faster"}}}
	for value, want := range map[string]string{"true": decisionBest, "on": decisionBest, "false": decisionCosts, "maybe": decisionUntested} {
		got := judgeLever(e, v, planner.Decision{Knob: "overlap", Value: value})
		if got.judgement != want {
			t.Errorf("planned %q is judged %q, want %q", value, got.judgement, want)
		}
		if want == decisionCosts { // off is to on as 1 is to 1.25
			if c := got.change; math.Abs(c.Effect+0.2) > 1e-9 || math.Abs(c.Lo+1./3) > 1e-9 || c.Hi >= c.Effect+0.2 || c.Baseline != "on" || c.Verdict != "worse" {
				t.Errorf("seen from the baseline: %+v", c)
			}
		}
	}
}

// Of a baseline's rivals the one that says most against it is the evidence.
func TestDecisionThatIsTheBaseline(t *testing.T) {
	e := record.Experiment{Baseline: "1", Arms: []record.Arm{{Name: "1", Value: "1"}, {Name: "2", Value: "2"}, {Name: "4", Value: "4"}}}
	for _, c := range []struct{ two, four, want, evidence string }{
		{"worse", "worse", decisionBest, "two"},
		{"equivalent", "worse", decisionNeutral, "two"},
		{"worse", "undecided", decisionUndecided, "four"},
		{"undecided", "better", decisionCosts, "four"},
	} {
		v := record.Verdict{Comparisons: []record.Comparison{
			{Arm: "2", Baseline: "1", Pairs: 8, Verdict: c.two, Sentence: "two"}, {Arm: "4", Baseline: "1", Pairs: 8, Verdict: c.four, Sentence: "four"},
		}}
		got := judgeLever(e, v, planner.Decision{Knob: "io-threads", Value: "1"})
		if got.judgement != c.want || !strings.HasSuffix(got.evidence, ": "+c.evidence) {
			t.Errorf("2 %s, 4 %s: %q by %q, want %q by %q", c.two, c.four, got.judgement, got.evidence, c.want, c.evidence)
		}
	}
}

// An experiment that takes the plan's decisions back one by one judges each, and
// the plan as a whole.
func TestDecisionsTakenBack(t *testing.T) {
	d := testData()
	cfg := config.Default()
	cfg.CacheMB = 512
	e := record.Experiment{
		ID: "earns123456", Kind: kindEarns, Metric: "decode", Baseline: "mmap", Model: testModel(2), Machine: testMachine(), Build: testBuild(), RegisteredAt: day.AddDate(0, 0, 2),
		Arms: []record.Arm{{Name: "plan", Value: "plan", Config: cfg}, {Name: "mmap"}, {Name: "without cache-mb", Value: "auto"}},
	}
	d.Experiments = append(d.Experiments, e)
	d.Verdicts = append(d.Verdicts, record.Verdict{ID: "v9", ExperimentID: e.ID, Comparisons: []record.Comparison{
		{Arm: "plan", Baseline: "mmap", Pairs: 8, Effect: 20, Lo: 15, Hi: 25, Level: 0.977, Verdict: "better", Sentence: "the plan is 20 times as fast"},
		{Arm: "plan", Baseline: "without cache-mb", Pairs: 8, Effect: -0.2, Lo: -0.3, Hi: -0.1, Level: 0.977, Verdict: "worse", Sentence: "the cache costs"},
	}})
	list := d.decisions()
	if len(list) != 3 {
		t.Fatalf("%d decisions were tried, want the lever's and two", len(list))
	}
	whole, cache := list[1], list[2]
	if whole.Knob != wholePlan || whole.judgement != decisionBest {
		t.Errorf("the whole plan is %q, %q", whole.Knob, whole.judgement)
	}
	if cache.Knob != "cache-mb" || cache.Value != "512" || cache.judgement != decisionCosts {
		t.Errorf("the cache is %q %q, %q", cache.Knob, cache.Value, cache.judgement)
	}
	f, ok, err := decisionsFigure(list)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"n = 2 decisions tried", "cache-mb 512 (earn): costs, n = 8", "io-threads 4 (exp1): earned, n = 8"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the plot lacks %q", want)
		}
	}
}
