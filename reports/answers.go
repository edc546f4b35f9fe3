package reports

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// answersSection answers what a stranger asks first, each from the data alone.
func (d *Data) answersSection() Section {
	return Section{ID: "answers", Title: "In short", Blocks: []Block{
		Heading("Which setting is best here, and how sure is that?"), List(orNone(d.bestSettings(), "No experiment has a verdict yet.")),
		Heading("What did the planner get wrong?"), List(orNone(d.wrongPredictions(), "Nothing that was measured fell outside its predicted interval.")),
		Heading("What is the drive's ceiling?"), List(orNone(d.ceilings(), "No storage curve is stored yet.")),
		Heading("Did anything drift?"), List(orNone(d.drifts(), "No experiment has a drift estimate yet.")),
	}}
}

func orNone(list []string, none string) []string {
	if len(list) == 0 {
		return []string{none}
	}
	return list
}

// bestSettings is a sentence for each lever, machine, build and model, from the
// newest experiment on it that decided something, or else from the newest.
func (d *Data) bestSettings() (out []string) {
	best := map[string]int{} // by question: the place of the experiment that answers
	list := d.index().experiments
	usable := 0
	for i, e := range list {
		v, ok := d.verdict(e.ID)
		if !ok || len(v.Comparisons) == 0 || e.Kind == kindAA || d.index().voided[e.ID] != "" {
			continue
		}
		usable++
		key := orWord(e.Lever, e.Kind) + "\x00" + setting{e.Machine, e.Build, e.Model}.key()
		old, asked := best[key]
		if was, _ := d.verdict(list[old].ID); !asked || decided(v) || !decided(was) {
			best[key] = i
		}
	}
	chosen := slices.Sorted(maps.Values(best))
	chosen = chosen[max(len(chosen)-answersShown, 0):]
	for _, i := range chosen {
		v, _ := d.verdict(list[i].ID)
		out = append(out, bestSetting(list[i], v))
	}
	if older := usable - len(chosen); older > 0 {
		out = append(out, analysis.Count(older, "more sweep")+" of the same or other levers: see Findings")
	}
	return out
}

const kindAA = "aa"

// decided reports whether a verdict tells any arm from another, or that they
// are the same.
func decided(v record.Verdict) bool {
	return slices.ContainsFunc(v.Comparisons, func(c record.Comparison) bool {
		return c.Verdict == "better" || c.Verdict == "worse" || c.Verdict == "equivalent" || c.Verdict == "small"
	})
}

// bestSetting names an experiment's best arm if one won, and otherwise says that
// none did and how many pairs said so. Of a plan it says how it did against
// each rival.
func bestSetting(e record.Experiment, v record.Verdict) string {
	name := fmt.Sprintf("%s on %s", orWord(e.Lever, e.Kind), orWord(e.Model.Name, short(e.Model.ID)))
	if e.Lever == "" {
		return name + ": " + strings.Join(sentencesOf(v), "; ")
	}
	best := -1
	for i, c := range v.Comparisons {
		if c.Verdict == "better" && (best < 0 || c.Effect > v.Comparisons[best].Effect) {
			best = i
		}
	}
	if best < 0 {
		return fmt.Sprintf("%s: none is known to be more than %s %% better than %s. Found: %s", name, percent(e.Margin), e.Baseline, strings.Join(sentencesOf(v), "; "))
	}
	text := fmt.Sprintf("%s: %s does best. Found: %s", name, v.Comparisons[best].Arm, sentence(v.Comparisons[best]))
	if close := notToldFrom(v, best); len(close) > 0 {
		text += fmt.Sprintf("; their intervals do not tell it from %s", strings.Join(close, ", "))
	}
	return text
}

// notToldFrom are the other arms that won whose interval reaches into the best
// one's: all were compared with the baseline, not with one another.
func notToldFrom(v record.Verdict, best int) (arms []string) {
	for i, c := range v.Comparisons {
		if i != best && c.Verdict == "better" && c.Hi >= v.Comparisons[best].Lo {
			arms = append(arms, c.Arm)
		}
	}
	return arms
}

// answersShown bounds each list of the answers.
const answersShown = 12

// wrongPredictions counts, for each thing predicted, the measurements outside
// their interval, with which way they lay and the worst of them; then what held,
// and the arms whose prediction a sweep refuted.
func (d *Data) wrongPredictions() (out []string) {
	var held []string
	for i := range quantities {
		q, list := &quantities[i], d.index().scores[i].list
		n, worst := 0, -1
		for at, m := range d.index().misses { // worst first
			if m.q == q {
				if n++; worst < 0 {
					worst = at
				}
			}
		}
		if n == 0 {
			if len(list) > 0 {
				held = append(held, fmt.Sprintf("%s (n = %d)", q.name, len(list)))
			}
			continue
		}
		m := d.index().misses[worst]
		bias := analysis.Calibrate(list, nominalCoverage, reportLevel).Bias
		out = append(out, fmt.Sprintf("%s: %d of %d measurements outside their predicted interval, all %d on average %s %% off what was predicted; the worst is run %s of %s: predicted %s [%s, %s], measured %s, %s %%", q.name, n, len(list), len(list), signedPercent(math.Expm1(bias)),
			short(m.run.Run.RunID), orWord(m.run.Run.Model.Name, short(m.run.Run.Model.ID)), q.write(m.s.Predicted), q.write(m.s.Lo), q.write(m.s.Hi), q.write(m.s.Measured), signedPercent(math.Expm1(m.error))))
	}
	out = append(out, d.refutedArms()...)
	if len(out) > 0 && len(held) > 0 {
		out = append(out, "always inside their interval: "+strings.Join(held, ", "))
	}
	return out
}

// refutedArms are the newest experiments' arms of which the plan's prediction
// was refuted.
func (d *Data) refutedArms() (out []string) {
	judged := 0
	for _, e := range d.index().experiments {
		v, ok := d.verdict(e.ID)
		if !ok || d.index().voided[e.ID] != "" {
			continue
		}
		for _, c := range v.Predictions {
			judged++
			if c.Verdict == "refuted" {
				out = append(out, fmt.Sprintf("%s, arm %s: the prediction is refuted: %s", experimentTitle(e), c.Arm, c.Reason))
			}
		}
	}
	if more := len(out) - answersShown; more > 0 {
		out = append(out[more:], fmt.Sprintf("in all, %d of %d arms' predictions were refuted", more+answersShown, judged))
	}
	return out
}

func (d *Data) ceilings() (out []string) {
	for _, p := range d.index().storage {
		b := bestRate(storageCurve(p))
		out = append(out, fmt.Sprintf("%s: %s MB/s, with %s of %s KiB (measured %s)", machineName(d.machine(p.MachineID)), digits(b.BytesPerS/1e6, 4), analysis.Count(b.Lanes, "lane"), digits(float64(b.Size)/1024, 4), date(p.At)))
	}
	return out
}

// drifts says of each experiment whether its rate moved over the schedule. Of
// many, those that drifted come before those that did not.
func (d *Data) drifts() []string {
	var moved, still []string
	for _, e := range d.index().experiments {
		v, ok := d.verdict(e.ID)
		if !ok || v.Drift == nil {
			continue
		}
		text := fmt.Sprintf("%s: %s", experimentTitle(e), driftSentence(*v.Drift))
		if drifted(*v.Drift) {
			moved = append(moved, text)
		} else {
			still = append(still, text)
		}
	}
	all := slices.Concat(moved, still)
	if len(all) == 0 {
		return nil
	}
	sum := fmt.Sprintf("%d of %s drifted, by the change of the rate from run to run; arms take turns, so that it falls on all alike", len(moved), analysis.Count(len(all), "experiment"))
	return append([]string{sum}, all[:min(len(all), answersShown)]...)
}

func drifted(t record.Trend) bool { return t.Lo > 0 || t.Hi < 0 }

func driftSentence(t record.Trend) string {
	text := fmt.Sprintf("%s %% a run (%s %% CI %s to %s %%)", signedPercent(math.Expm1(t.Estimate)), percent(t.Level), signedPercent(math.Expm1(t.Lo)), signedPercent(math.Expm1(t.Hi)))
	if drifted(t) {
		return "yes, " + text
	}
	return "none found, " + text
}
