package experiments

import (
	"fmt"
	"math"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// Method names how verdicts are reached; another way has another name, so that
// stored verdicts can be recomputed by the one they were reached with.
const Method = "signed-rank-holm/1"

// contrast is one comparison of the family: an arm and what it is against.
type contrast struct{ arm, baseline string }

func contrasts(e *record.Experiment, t Terms) []contrast {
	var out []contrast
	for _, a := range e.Arms {
		switch {
		case t.Favour != "" && a.Name != t.Favour:
			out = append(out, contrast{t.Favour, a.Name})
		case t.Favour == "" && a.Name != e.Baseline:
			out = append(out, contrast{a.Name, e.Baseline})
		}
	}
	return out
}

// finding is a contrast on its way to a verdict.
type finding struct {
	contrast
	d        []float64
	armFirst []bool
	void     string
	lost     int // pairs with a run that died
	effect   analysis.Effect
	level    float64
}

// Judge turns a registered experiment and its runs into a verdict. It is pure:
// the same runs give the same verdict for ever.
func Judge(e record.Experiment, runs []record.StoredRun) record.Verdict {
	t := TermsOf(&e)
	blocks := completeBlocks(&e, runs)
	v := record.Verdict{ExperimentID: e.ID, Method: Method, Comparisons: []record.Comparison{}, Warnings: []string{}}
	if e.Kind != KindPlan {
		v.Comparisons = compareAll(&e, t, blocks)
		v.Drift, v.Slot = nuisances(&e, blocks)
	}
	v.Predictions = judgePredictions(&e, blocks)
	v.Warnings = append(v.Warnings, warnings(&e, t, blocks, &v, runs)...)
	v.ID = v.ContentID()
	return v
}

func compareAll(e *record.Experiment, t Terms, blocks []block) []record.Comparison {
	family := contrasts(e, t)
	found := make([]finding, len(family))
	var p []float64
	for i, c := range family {
		found[i] = find(e, t, c, blocks, len(family))
		if found[i].void == "" {
			p = append(p, found[i].effect.P)
		}
	}
	adjusted := analysis.Holm(p, len(family))
	out := make([]record.Comparison, 0, len(family))
	for i := range found {
		pHolm := 1.0
		if found[i].void == "" {
			pHolm, adjusted = adjusted[0], adjusted[1:]
		}
		out = append(out, conclude(e, &found[i], pHolm, len(blocks)))
	}
	return out
}

// find pairs the arm with its baseline within each block.
func find(e *record.Experiment, t Terms, c contrast, blocks []block, family int) finding {
	f := finding{contrast: c}
	m := metrics[e.Metric]
	for _, b := range blocks {
		arm, base := b.runs[c.arm], b.runs[c.baseline]
		if arm == nil || base == nil {
			continue
		}
		x, ok1 := m.logRate(&arm.Run)
		y, ok2 := m.logRate(&base.Run)
		if !ok1 || !ok2 {
			f.lost++
			continue
		}
		f.d = append(f.d, x-y)
		f.armFirst = append(f.armFirst, arm.Slot.Pos < base.Slot.Pos)
	}
	f.void = voidReason(e, t, sideOf(armNamed(e, c.arm), blocks), sideOf(armNamed(e, c.baseline), blocks))
	f.level = levelFor(e, len(f.d), family)
	f.effect = analysis.NewEffect(f.d, f.level)
	return f
}

func armNamed(e *record.Experiment, name string) record.Arm {
	for _, a := range e.Arms {
		if a.Name == name {
			return a
		}
	}
	return record.Arm{Name: name}
}

// levelFor is the confidence level of one comparison: Bonferroni over the
// family, or what the look in question may spend.
func levelFor(e *record.Experiment, pairs, family int) float64 {
	switch {
	case e.Looks == 2 && pairs == firstLook:
		return 1 - analysis.SmallestP(firstLook)
	case e.Looks == 2:
		return 1 - secondLookErr
	}
	return analysis.DisplayLevel(e.Alpha, family)
}

// conclude words one comparison.
func conclude(e *record.Experiment, f *finding, pHolm float64, blocks int) record.Comparison {
	c := record.Comparison{
		Arm: f.arm, Baseline: f.baseline, Pairs: len(f.d), Deltas: f.d,
		P: f.effect.P, PHolm: pHolm, Positive: f.effect.Signs.Positive, Negative: f.effect.Signs.Negative,
	}
	if len(f.d) > 0 {
		c.Effect, c.Lo, c.Hi = analysis.Ratio(f.effect.Estimate), analysis.Ratio(f.effect.Lo), analysis.Ratio(f.effect.Hi)
		c.Level = f.effect.Level
		c.MDE = finite(analysis.Ratio(analysis.MDE(analysis.PairNoise(f.d, f.armFirst), len(f.d), f.level, 0.8)))
		c.Sentence = f.effect.Sentence(armWords(e, f.arm), metrics[e.Metric].verb, f.baseline)
	}
	alpha := e.Alpha
	if e.Looks == 2 {
		alpha = 1 - f.level
	}
	verdict, reason := f.effect.Judge(analysis.LogRatio(e.Margin), alpha, pHolm)
	if e.Looks == 2 && len(f.d) == firstLook && verdict != analysis.Better && verdict != analysis.Worse {
		verdict, reason = analysis.Undecided, "the first of two looks decides only what is clear of the margin"
	}
	if f.void != "" {
		verdict, reason = analysis.Void, f.void
	}
	c.Verdict, c.Reason = string(verdict), reason+shortfall(e, f, blocks)
	if e.Band != nil {
		judgeBand(e, f, &c)
	}
	return c
}

// shortfall says why there are fewer pairs than were registered.
func shortfall(e *record.Experiment, f *finding, blocks int) string {
	switch {
	case f.void != "":
		return ""
	case f.lost > 0:
		return fmt.Sprintf("; in %d of %d pairs a run died", f.lost, blocks)
	case blocks < e.Pairs && e.Looks != 2:
		return fmt.Sprintf("; %d of %d pairs were run", blocks, e.Pairs)
	}
	return ""
}

func judgeBand(e *record.Experiment, f *finding, c *record.Comparison) {
	if f.void != "" {
		c.Predicted, c.PredictedReason = string(analysis.Void), f.void
		return
	}
	word, why := f.effect.JudgeBand(bandEnds(*e.Band))
	c.Predicted, c.PredictedReason = string(word), why
}

// finite replaces what JSON cannot hold; an effect that cannot be found at all
// has no smallest size.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// judgePredictions judges what the planner expected of each arm's decoding:
// the interval of predicted over measured seconds against the interval that
// was predicted.
func judgePredictions(e *record.Experiment, blocks []block) []record.Comparison {
	var out []record.Comparison
	for _, a := range e.Arms {
		if a.Prediction == nil || !a.Prediction.DecodeSPerToken.Known || a.Prediction.DecodeSPerToken.Point <= 0 {
			continue
		}
		out = append(out, judgePrediction(e, a, sideOf(a, blocks)))
	}
	return out
}

func judgePrediction(e *record.Experiment, a record.Arm, s side) record.Comparison {
	want := a.Prediction.DecodeSPerToken
	var d []float64
	for _, r := range s.done {
		if r.Measured.DecodeSPerToken > 0 {
			d = append(d, math.Log(want.Point/r.Measured.DecodeSPerToken))
		}
	}
	f := analysis.NewEffect(d, 1-e.Alpha)
	c := record.Comparison{
		Arm: a.Name, Baseline: "prediction", Pairs: len(d), Deltas: d, P: f.P, PHolm: f.P,
		Positive: f.Signs.Positive, Negative: f.Signs.Negative,
	}
	if len(d) > 0 {
		c.Effect, c.Lo, c.Hi, c.Level = analysis.Ratio(f.Estimate), analysis.Ratio(f.Lo), analysis.Ratio(f.Hi), f.Level
		c.Sentence = f.Sentence(armWords(e, a.Name), analysis.VerbDecode, "predicted")
	}
	var word analysis.Verdict
	switch {
	case len(s.done) == 0 && len(s.lost) > 0:
		word, c.Reason = analysis.Void, fmt.Sprintf("every run %s: %s", ending(s.lost[0].State), fate(s.lost[0]))
	case want.Lo <= 0 || want.Hi < want.Lo:
		word, c.Reason = analysis.Void, "the plan gave a point without an interval: nothing could refute it"
	default:
		word, c.Reason = f.JudgeBand(math.Log(want.Point/want.Hi), math.Log(want.Point/want.Lo))
	}
	c.Verdict = string(word)
	return c
}
