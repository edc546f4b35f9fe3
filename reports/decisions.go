package reports

import (
	"fmt"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

// What the sweeps say of a planned value.
const (
	decisionBest      = "earned"        // better than the baseline and no arm beats it
	decisionCosts     = "costs"         // an arm does better, or it does worse than the baseline
	decisionNeutral   = "no difference" // equivalent to the baseline
	decisionUndecided = "undecided"
	decisionUntested  = "untested" // its value was no arm
)

// decisionsSection sets what plans chose beside what sweeps of that knob found.
func (d *Data) decisionsSection() Section {
	s := Section{ID: "decisions", Title: "Decisions that earned their keep"}
	t := Table{
		Caption: "For every sweep with a verdict: the value the newest plan for the same model chose for its lever, and what the sweep says of that value.",
		Columns: columns("knob", "model", "planned", "provenance", "plan's reason", "sweep", "#pairs", "judgement", "evidence"),
	}
	chosen := map[[2]string]planner.Decision{} // by model and knob; a zero one is none
	for _, e := range d.index().experiments {
		v, ok := d.verdict(e.ID)
		if !ok || e.Lever == "" {
			continue
		}
		key := [2]string{e.Model.ID, e.Lever}
		dec, known := chosen[key]
		if !known {
			dec = d.plannedValue(e.Model.ID, e.Lever)
			chosen[key] = dec
		}
		if dec.Knob == "" {
			continue
		}
		judgement, evidence := judgeDecision(e, v, dec.Value)
		t.Rows = append(t.Rows, []string{
			dec.Knob, orWord(e.Model.Name, short(e.Model.ID)), dec.Value, string(dec.Provenance), dec.Brief, short(e.ID), pairsShort(v), judgement, evidence,
		})
	}
	if len(t.Rows) == 0 {
		s.Blocks = append(s.Blocks, Text("No sweep has tried a knob that a stored plan chose yet."))
		return s
	}
	s.Blocks = append(s.Blocks, t)
	return s
}

func pairsShort(v record.Verdict) string {
	if len(v.Comparisons) == 0 {
		return none
	}
	return fmt.Sprint(v.Comparisons[0].Pairs)
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

func judgeDecision(e record.Experiment, v record.Verdict, value string) (judgement, evidence string) {
	arm := ""
	for _, a := range e.Arms {
		if plainValue(a.Value) == plainValue(value) {
			arm = a.Name
		}
	}
	if arm == "" {
		return decisionUntested, "no arm of the sweep had this value"
	}
	if arm == e.Baseline {
		return judgeBaseline(v)
	}
	for _, c := range v.Comparisons {
		if c.Arm != arm {
			continue
		}
		switch c.Verdict {
		case "better":
			for _, o := range v.Comparisons {
				if o.Verdict == "better" && o.Lo > c.Hi {
					return decisionCosts, sentence(o)
				}
			}
			return decisionBest, sentence(c)
		case "worse":
			return decisionCosts, sentence(c)
		case "equivalent":
			return decisionNeutral, sentence(c)
		}
		return decisionUndecided, sentence(c)
	}
	return decisionUntested, "the sweep has no finding on this arm"
}

// judgeBaseline: the planned value is what the others were compared with.
func judgeBaseline(v record.Verdict) (judgement, evidence string) {
	judgement = decisionBest
	for _, c := range v.Comparisons {
		switch c.Verdict {
		case "better":
			return decisionCosts, sentence(c)
		case "worse":
		case "equivalent":
			if judgement == decisionBest {
				judgement = decisionNeutral
			}
		default:
			judgement = decisionUndecided
		}
		evidence = sentence(c)
	}
	return judgement, evidence
}
