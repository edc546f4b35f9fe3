package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// What the sweeps say of a planned value.
const (
	decisionBest      = "earned"        // better than the baseline and no arm beats it
	decisionCosts     = "costs"         // an arm does better, or it does worse than the baseline
	decisionNeutral   = "no difference" // equivalent to the baseline
	decisionUndecided = "undecided"
	decisionVoid      = "void"
	decisionUntested  = "untested" // its value was no arm
)

// How the experiment that takes back one decision at a time names its arms.
const (
	kindEarns   = "plan-vs-baseline"
	armPlan     = "plan"
	withoutKnob = "without "
)

// wholePlan stands for a knob where the plan as a whole was compared.
const wholePlan = "the whole plan"

// decision is a planned value and what an experiment says of it.
type decision struct {
	planner.Decision
	experiment record.Experiment
	judgement  string
	evidence   string
	change     record.Comparison // of the planned value against another; no pairs: none
}

// decisionsSection sets what plans chose beside what experiments found.
func (d *Data) decisionsSection() (Section, error) {
	s := Section{ID: "decisions", Title: "Decisions that earned their keep"}
	list := d.decisions()
	if len(list) == 0 {
		s.Blocks = append(s.Blocks, Text("No sweep has tried a knob that a stored plan chose yet."))
		return s, nil
	}
	f, ok, err := decisionsFigure(list)
	if err != nil {
		return s, err
	}
	if ok {
		s.Blocks = append(s.Blocks, f)
	}
	t := Table{
		Caption: fmt.Sprintf("For every experiment with a verdict: the value the newest plan for the same model chose for its lever, or the decisions that a plan was run without, and what the experiment says of that value. %s; n = %s.",
			decisionsOf(list), countOf(len(list))),
		Columns: columns("knob", "model", "planned", "provenance", "plan's reason", "experiment", "#pairs", "#level %", "judgement", "evidence"),
	}
	for _, dec := range list {
		e := dec.experiment
		t.Rows = append(t.Rows, []string{
			dec.Knob, orWord(e.Model.Name, short(e.Model.ID)), orWord(dec.Value, none), orWord(string(dec.Provenance), none), orWord(dec.Brief, none), short(e.ID),
			strconv.Itoa(dec.change.Pairs), level(dec.change), dec.judgement, dec.evidence,
		})
	}
	s.Blocks = append(s.Blocks, t)
	return s, nil
}

func countOf(n int) string { return analysis.Count(n, "decision") + " tried" }

// decisionsOf says on what machines, builds and models decisions were tried,
// and when.
func decisionsOf(list []decision) string {
	var at []*record.StoredRun
	for _, dec := range list {
		e := dec.experiment
		at = append(at, &record.StoredRun{Run: record.Run{Machine: e.Machine, Build: e.Build, Model: e.Model, StartedAt: e.RegisteredAt}})
	}
	return whereAndWhen(at)
}

// decisions are the planned values that experiments tried, oldest first.
func (d *Data) decisions() (out []decision) {
	chosen := map[[2]string]planner.Decision{} // by model and knob; a zero one is none
	planned := func(model, knob string) planner.Decision {
		key := [2]string{model, knob}
		dec, known := chosen[key]
		if !known {
			dec = d.plannedValue(model, knob)
			chosen[key] = dec
		}
		return dec
	}
	for _, e := range d.index().experiments {
		v, ok := d.verdict(e.ID)
		if !ok || d.index().voided[e.ID] != "" {
			continue
		}
		switch {
		case e.Lever != "":
			if dec := planned(e.Model.ID, e.Lever); dec.Knob != "" {
				out = append(out, judgeLever(e, v, dec))
			}
		case e.Kind == kindEarns:
			for _, c := range v.Comparisons {
				if c.Arm == armPlan {
					out = append(out, judgeTakenBack(e, c, planned))
				}
			}
		}
	}
	return out
}

// judgeTakenBack judges a decision by the plan against the plan without it, or
// the plan as a whole against another way to run.
func judgeTakenBack(e record.Experiment, c record.Comparison, planned func(model, knob string) planner.Decision) decision {
	out := decision{experiment: e, change: c, judgement: judgementOf(c), evidence: sentence(c)}
	knob, one := strings.CutPrefix(c.Baseline, withoutKnob)
	if !one {
		out.Knob = wholePlan
		return out
	}
	out.Knob = knob
	i := slices.IndexFunc(e.Arms, func(a record.Arm) bool { return a.Name == armPlan })
	if p, ok := config.Lookup(knob); ok && i >= 0 {
		out.Value = p.Get(&e.Arms[i].Config)
	}
	if dec := planned(e.Model.ID, knob); dec.Value == out.Value {
		out.Decision = dec
	}
	return out
}

func judgementOf(c record.Comparison) string {
	switch c.Verdict {
	case "better":
		return decisionBest
	case "worse":
		return decisionCosts
	case "equivalent":
		return decisionNeutral
	case "void":
		return decisionVoid
	}
	return decisionUndecided
}

// plannedValue is the newest planned decision on a knob for a model; zero where
// none is stored.
func (d *Data) plannedValue(model, knob string) planner.Decision {
	r, ok := newest(d.index().ofModel[model], func(r *record.StoredRun) bool {
		_, has := decisionOn(r.Run.Plan, knob)
		return has
	})
	if !ok {
		return planner.Decision{}
	}
	dec, _ := decisionOn(r.Run.Plan, knob)
	return dec
}

func decisionOn(p *planner.Plan, knob string) (planner.Decision, bool) {
	if p == nil {
		return planner.Decision{}, false
	}
	for _, dec := range p.Decisions {
		if dec.Knob == knob && dec.Provenance != planner.Operator {
			return dec, true
		}
	}
	return planner.Decision{}, false
}

// plainValue writes a switch one way: sweeps say on, plans say true.
func plainValue(v string) string {
	switch v {
	case "true":
		return "on"
	case "false":
		return "off"
	}
	return v
}

// judgeLever judges a planned value by a sweep of its knob.
func judgeLever(e record.Experiment, v record.Verdict, dec planner.Decision) decision {
	out := decision{Decision: dec, experiment: e, judgement: decisionUntested, evidence: "no arm of the sweep had this value"}
	i := slices.IndexFunc(e.Arms, func(a record.Arm) bool { return plainValue(a.Value) == plainValue(dec.Value) })
	switch {
	case i < 0:
	case e.Arms[i].Name == e.Baseline:
		out.asBaseline(v)
	default:
		out.asArm(v, e.Arms[i].Name)
	}
	return out
}

// asArm: the planned value was compared with the baseline.
func (dec *decision) asArm(v record.Verdict, arm string) {
	dec.evidence = "the sweep has no finding on this arm"
	for _, c := range v.Comparisons {
		if c.Arm != arm {
			continue
		}
		dec.change, dec.judgement, dec.evidence = c, judgementOf(c), sentence(c)
		if c.Verdict != "better" {
			return
		}
		for _, o := range v.Comparisons {
			if o.Verdict == "better" && o.Lo > c.Hi {
				dec.judgement, dec.evidence = decisionCosts, sentence(o)
			}
		}
		return
	}
}

// asBaseline: the planned value is what the others were compared with. What
// says most against it is the evidence.
func (dec *decision) asBaseline(v record.Verdict) {
	dec.evidence = "the sweep has no finding on another arm"
	rank := map[string]int{decisionBest: 0, decisionNeutral: 1, decisionVoid: 2, decisionUndecided: 3, decisionCosts: 4}
	for _, c := range v.Comparisons {
		against := turned(c)
		if j := judgementOf(against); dec.judgement == decisionUntested || rank[j] > rank[dec.judgement] {
			dec.judgement, dec.evidence, dec.change = j, sentence(c), against
		}
	}
}

// turned is a comparison seen from its baseline.
func turned(c record.Comparison) record.Comparison {
	turn := func(x float64) float64 { return 1/(1+x) - 1 }
	c.Arm, c.Baseline, c.Effect, c.Lo, c.Hi = c.Baseline, c.Arm, turn(c.Effect), turn(c.Hi), turn(c.Lo)
	switch c.Verdict {
	case "better":
		c.Verdict = "worse"
	case "worse":
		c.Verdict = "better"
	}
	return c
}
