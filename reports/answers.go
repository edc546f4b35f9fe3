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
		Text("Which setting is best here, and how sure is that?"), List(orNone(d.bestSettings(), "No experiment has a verdict yet.")),
		Text("What did the planner get wrong?"), List(orNone(d.wrongPredictions(), "Nothing that was measured fell outside its predicted interval.")),
		Text("What is the drive's ceiling?"), List(orNone(d.ceilings(), "No storage curve is stored yet.")),
		Text("Did anything drift?"), List(orNone(d.drifts(), "No experiment has a drift estimate yet.")),
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
	if best >= 0 {
		return fmt.Sprintf("%s: %s", name, sentence(v.Comparisons[best]))
	}
	return fmt.Sprintf("%s: nothing is known to beat %s by more than %s %%: %s", name, e.Baseline, percent(e.Margin), strings.Join(sentencesOf(v), "; "))
}

// answersShown bounds each list of the answers.
const answersShown = 12

// wrongPredictions counts, for each thing predicted, the measurements outside
// their interval, and names the worst.
func (d *Data) wrongPredictions() (out []string) {
	for i := range quantities {
		q := &quantities[i]
		n, worst := 0, -1
		for at, m := range d.index().misses { // worst first
			if m.q == q {
				if n++; worst < 0 {
					worst = at
				}
			}
		}
		if n == 0 {
			continue
		}
		m := d.index().misses[worst]
		out = append(out, fmt.Sprintf("%s: %d of %d measurements outside their predicted interval; the worst is run %s of %s: predicted %s [%s, %s], measured %s, %s %%", q.name, n, len(d.index().scores[i].list),
			short(m.run.Run.RunID), orWord(m.run.Run.Model.Name, short(m.run.Run.Model.ID)), q.write(m.s.Predicted), q.write(m.s.Lo), q.write(m.s.Hi), q.write(m.s.Measured), signedPercent(math.Expm1(m.error))))
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
	if len(all) <= answersShown {
		return all
	}
	return append(all[:answersShown:answersShown], fmt.Sprintf("in all, %d experiments drifted and in %d no drift was found", len(moved), len(still)))
}

func drifted(t record.Trend) bool { return t.Lo > 0 || t.Hi < 0 }

func driftSentence(t record.Trend) string {
	text := fmt.Sprintf("%s %% a run (%s %% CI %s to %s %%)", signedPercent(math.Expm1(t.Estimate)), percent(t.Level), signedPercent(math.Expm1(t.Lo)), signedPercent(math.Expm1(t.Hi)))
	if drifted(t) {
		return "yes, " + text
	}
	return "none found, " + text
}
