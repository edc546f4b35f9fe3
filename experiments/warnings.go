package experiments

import (
	"fmt"
	"math"
	"sort"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// Rules by which a run counts as contaminated. They are fixed here, reported by
// name and never used to drop a run.
const (
	faultJump   = 10  // times the arm's median of major faults
	faultLeast  = 500 // faults below which a jump means nothing
	heatRiseC   = 10  // degrees within one run
	psiHigh     = 20  // percent of time some task waited
	memoryShare = 0.8 // of the first run's available memory
	swapGrowth  = 64 << 20
)

// nuisances estimates drift over the schedule and the effect of going first.
func nuisances(e *record.Experiment, blocks []block) (drift, slot *record.Trend) {
	obs := observations(e, blocks)
	if s, ok := analysis.Drift(obs, 0.95); ok {
		drift = trend(s)
	}
	if s, ok := analysis.SlotEffect(obs, 0.95); ok {
		slot = trend(s)
	}
	return drift, slot
}

func trend(s analysis.Slope) *record.Trend {
	return &record.Trend{Estimate: s.Estimate, Lo: s.Lo, Hi: s.Hi, Level: s.Level}
}

func observations(e *record.Experiment, blocks []block) []analysis.Observation {
	m := metrics[e.Metric]
	var obs []analysis.Observation
	for _, b := range blocks {
		for _, a := range e.Arms {
			r := b.runs[a.Name]
			if r == nil {
				continue
			}
			if y, ok := m.logRate(&r.Run); ok {
				obs = append(obs, analysis.Observation{Run: r.Slot.Index, Block: b.number, Pos: r.Slot.Pos, Arm: a.Name, LogRate: y})
			}
		}
	}
	return obs
}

// warnings lists what a reader should know before trusting the verdict.
func warnings(e *record.Experiment, t Terms, blocks []block, v *record.Verdict, runs []record.StoredRun) []string {
	var w []string
	w = append(w, deaths(e, blocks)...)
	if d := v.Drift; d != nil && (d.Lo > 0 || d.Hi < 0) {
		w = append(w, fmt.Sprintf("drift: runs changed by %+.2f %% each, in order (%s CI %+.2f to %+.2f); the order cancels a steady drift",
			100*analysis.Ratio(d.Estimate), analysis.Level(d.Level), 100*analysis.Ratio(d.Lo), 100*analysis.Ratio(d.Hi)))
	}
	if s := v.Slot; s != nil && (s.Lo > 0 || s.Hi < 0) {
		w = append(w, fmt.Sprintf("slot-effect: the first run of a block was %+.1f %% against the later ones (%s CI %+.1f to %+.1f)",
			100*analysis.Ratio(s.Estimate), analysis.Level(s.Level), 100*analysis.Ratio(s.Lo), 100*analysis.Ratio(s.Hi)))
	}
	w = append(w, faultJumps(e, blocks)...)
	w = append(w, conditions(blocks)...)
	w = append(w, outputs(e, blocks)...)
	if len(blocks) < e.Pairs && e.Looks != 2 {
		w = append(w, fmt.Sprintf("incomplete: %d of %d blocks were run; more pairs now would be a new experiment", len(blocks), e.Pairs))
	}
	return w
}

// deaths lists, by arm, the runs that did not end well.
func deaths(e *record.Experiment, blocks []block) []string {
	var w []string
	for _, a := range e.Arms {
		s := sideOf(a, blocks)
		byState := map[string][]*record.Run{}
		for _, r := range s.lost {
			byState[r.State] = append(byState[r.State], r)
		}
		var states []string
		for state := range byState {
			states = append(states, state)
		}
		sort.Strings(states)
		for _, state := range states {
			w = append(w, fmt.Sprintf("%s: %d of %d runs of %s (%s)", state, len(byState[state]), len(s.lost)+len(s.done), armWords(e, a.Name), fate(byState[state][0])))
		}
	}
	return w
}

// faultJumps flags runs with far more major faults than others of their arm:
// memory was taken from them.
func faultJumps(e *record.Experiment, blocks []block) []string {
	var w []string
	for _, a := range e.Arms {
		s := sideOf(a, blocks)
		var x []float64
		for _, r := range s.done {
			x = append(x, float64(r.Measured.MajorFaults))
		}
		median, worst, n := analysis.Median(x), 0.0, 0
		for _, v := range x {
			if v >= faultLeast && v > faultJump*math.Max(median, 1) {
				n, worst = n+1, math.Max(worst, v)
			}
		}
		if n > 0 {
			w = append(w, fmt.Sprintf("major-faults: %d of %d runs of %s had up to %.0f against a median of %.0f", n, len(x), armWords(e, a.Name), worst, median))
		}
	}
	return w
}

// conditions sums up, by rule, the runs that started or ran in other
// conditions than the first.
func conditions(blocks []block) []string {
	n := map[string]int{}
	total, first := 0, int64(0)
	for _, b := range blocks {
		for _, r := range b.runs {
			total++
			if r.Slot.Index == 0 || first == 0 {
				first = max(first, r.Run.EnvBefore.MemAvailable)
			}
		}
	}
	for _, b := range blocks {
		for _, r := range b.runs {
			for _, rule := range brokenRules(&r.Run, first) {
				n[rule]++
			}
		}
	}
	var rules []string
	for rule := range n {
		rules = append(rules, rule)
	}
	sort.Strings(rules)
	for i, rule := range rules {
		rules[i] = fmt.Sprintf("%s (%d of %d runs)", rule, n[rule], total)
	}
	return rules
}

func brokenRules(r *record.Run, available int64) []string {
	var w []string
	for _, text := range r.Warnings {
		if rule, ok := gateRule(text); ok {
			w = append(w, rule)
		}
	}
	if rise := r.EnvAfter.TempC - r.EnvBefore.TempC; r.EnvBefore.TempC > 0 && rise > heatRiseC {
		w = append(w, fmt.Sprintf("thermal: over %d degrees warmer after the run than before", heatRiseC))
	}
	if underPressure(&r.EnvBefore) {
		w = append(w, fmt.Sprintf("pressure: others waited for memory or storage over %d %% of the time before the run", psiHigh))
	}
	if r.EnvBefore.Governor == "powersave" {
		w = append(w, "governor: the processors were set to save power")
	}
	if r.EnvAfter.SwapUsed > r.EnvBefore.SwapUsed+swapGrowth {
		w = append(w, "swap: pages were written to swap during the run")
	}
	if have := r.EnvBefore.MemAvailable; have > 0 && float64(have) < memoryShare*float64(available) {
		w = append(w, "memory: less than 80 % of the first run's available memory before the run")
	}
	return w
}

// underPressure goes by the moment before the run where it was looked at. Runs
// of before have averages only, which the run before them is part of.
func underPressure(e *record.Environment) bool {
	if e.Entry != nil {
		return e.Entry.Mem > psiHigh || e.Entry.IO > psiHigh
	}
	return e.PSIMem > psiHigh || e.PSIIO > psiHigh
}

// outputs notes a lever whose arms computed different tokens, where it may.
func outputs(e *record.Experiment, blocks []block) []string {
	if !bitsMayDiffer(e) {
		return nil
	}
	hash := ""
	for _, b := range blocks {
		for _, r := range b.runs {
			if r.Run.State != record.StateDone {
				continue
			}
			if hash != "" && r.Run.TokenHash != hash {
				return []string{"output: the arms produced different tokens, equal in number; " + e.Lever + " may change the last bits"}
			}
			hash = r.Run.TokenHash
		}
	}
	return nil
}
