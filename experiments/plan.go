package experiments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// Names of the arms of a plan-vs-baseline experiment.
const (
	ArmPlan    = "plan"
	ArmMmap    = "mmap"
	armWithout = "without "

	// anyKnob allows an arm to differ in all knobs: what the defaults leave to
	// the engine resolves differently when nothing is streamed.
	anyKnob = "*"
)

// mechanical are knobs that only say where a decision goes, or that cannot be
// taken back alone.
var mechanical = []string{
	"model", "prompt", "file", "chat", "stop", "ignore-eos", "predict", "random-tokens", "seed", "temp", "top-k", "top-p",
	"ctx-size", "route-trace", "logits-hash", "moe-stream", "rpc", "cache-type-k", "cache-type-v", "n-expert-used",
}

// companions must be taken back with a knob, because the engine refuses one
// without the other.
var companions = map[string][]string{
	"dense-weights":  {"release-mmap"},
	"cache-pin":      {"cache-pin-fit"},
	"prefill-device": {"prefill-best-effort", "prefill-min-tokens", "prefill-verify"},
}

// promptOnly are knobs that decoding does not feel.
var promptOnly = []string{"ubatch", "batch-size", "threads-batch", "prefill-slots", "prefill-slots-on-demand", "prefill-device", "prefill-best-effort", "prefill-min-tokens", "prefill-verify"}

// Retain keeps, of the arms of PlanArms, the plan and those named: mmap, or a
// knob that is taken back. With no names it leaves out the knobs that the
// metric does not feel, and returns them.
func Retain(arms []record.Arm, names []string, metric string) (kept []record.Arm, left []string, err error) {
	for _, a := range arms {
		knob := strings.TrimPrefix(a.Name, armWithout)
		switch {
		case a.Name == ArmPlan, slices.Contains(names, knob):
			kept = append(kept, a)
		case len(names) > 0:
		case metric == MetricDecode && slices.Contains(promptOnly, knob):
			left = append(left, knob)
		default:
			kept = append(kept, a)
		}
	}
	if len(names) > 0 && len(kept) != len(names)+1 {
		var has []string
		for _, a := range arms[1:] {
			has = append(has, strings.TrimPrefix(a.Name, armWithout))
		}
		return nil, nil, fmt.Errorf("--values %s: the plan can be compared with %s", strings.Join(names, ","), strings.Join(has, ", "))
	}
	return kept, left, nil
}

// PlanArms are the plan, llama.cpp's defaults (mapped, nothing streamed), and
// the plan with each of its decisions taken back in turn: decisions that the
// caller pinned are not the plan's and stay. allowed names the knobs in which
// each arm may differ from the plan.
func PlanArms(p planner.Plan) (arms []record.Arm, allowed map[string][]string) {
	plan := p.Config
	base := defaults(plan)
	arms = []record.Arm{{Name: ArmPlan, Value: ArmPlan, Config: plan}, {Name: ArmMmap, Value: ArmMmap, Config: base}}
	allowed = map[string][]string{ArmMmap: {anyKnob}}
	def := config.Default()
	for _, knob := range config.Diff(&plan, &def) {
		if slices.Contains(mechanical, knob) || pinned(p, knob) || !plan.MoeStream {
			continue
		}
		c := plan
		for _, k := range append([]string{knob}, companions[knob]...) {
			revert(&c, k)
		}
		name := armWithout + knob
		arms = append(arms, record.Arm{Name: name, Value: Shown(lookup(knob), &c), Config: c})
		allowed[name] = config.Diff(&plan, &c)
	}
	return arms, allowed
}

// defaults keep the question (model, prompt, tokens) and drop every decision.
func defaults(plan config.Config) config.Config {
	c := config.Default()
	for _, name := range mechanical {
		if name == "moe-stream" {
			continue
		}
		carry(lookup(name), &plan, &c)
	}
	return c
}

func lookup(knob string) *config.Param {
	p, _ := config.Lookup(knob)
	return p
}

// carry copies a knob's value from one configuration to another.
func carry(p *config.Param, from, to *config.Config) {
	switch src := p.Pointer(from).(type) {
	case *bool:
		*p.Pointer(to).(*bool) = *src
	case *int:
		*p.Pointer(to).(*int) = *src
	case *int64:
		*p.Pointer(to).(*int64) = *src
	case *float64:
		*p.Pointer(to).(*float64) = *src
	case *string:
		*p.Pointer(to).(*string) = *src
	case *[]string:
		*p.Pointer(to).(*[]string) = slices.Clone(*src)
	}
}

func revert(c *config.Config, knob string) {
	def := config.Default()
	carry(lookup(knob), &def, c)
}

func pinned(p planner.Plan, knob string) bool {
	for _, d := range p.Decisions {
		if d.Knob == knob {
			return d.Provenance == planner.Operator
		}
	}
	return false
}

// PlanTrial is the question whether a plan measures what it predicts: n runs
// of the plan's own configuration.
func PlanTrial(p planner.Plan, pred record.Prediction, n int) Question {
	return Question{
		Kind:   KindPlan,
		Arms:   []record.Arm{{Name: ArmPlan, Value: ArmPlan, Config: p.Config, Prediction: &pred}},
		Metric: MetricDecode, Pairs: n, ExactPairs: true, Alpha: 0.05, Margin: 0.02, CacheState: CacheWarm,
		Terms: Terms{NoiseSD: assumedNoise, NoiseSource: "assumed", EntryWaitS: 10, RunTimeoutS: 3600},
	}
}
