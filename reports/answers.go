package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"

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
// newest experiment on it that counts.
func (d *Data) bestSettings() (out []string) {
	older := 0
	list := d.index().experiments
	asked := map[string]bool{}
	for i := len(list) - 1; i >= 0; i-- { // the newest sweep answers for its lever
		e := list[i]
		v, ok := d.verdict(e.ID)
		if !ok || len(v.Comparisons) == 0 || e.Lever == "" || d.index().voided[e.ID] != "" {
			continue
		}
		key := e.Lever + "\x00" + setting{e.Machine, e.Build, e.Model}.key()
		if asked[key] || len(out) == answersShown {
			older++
			continue
		}
		asked[key] = true
		out = append(out, bestSetting(e, v))
	}
	slices.Reverse(out)
	if older > 0 {
		out = append(out, count(older, "older sweep", "older sweeps")+" of the same or other levers: see Findings")
	}
	return out
}

// bestSetting names an experiment's best arm if one won, and otherwise says that
// none did and how many pairs said so.
func bestSetting(e record.Experiment, v record.Verdict) string {
	name := fmt.Sprintf("%s on %s", e.Lever, orWord(e.Model.Name, short(e.Model.ID)))
	best := -1
	for i, c := range v.Comparisons {
		if c.Verdict == "better" && (best < 0 || c.Effect > v.Comparisons[best].Effect) {
			best = i
		}
	}
	if best >= 0 {
		return fmt.Sprintf("%s: %s", name, sentence(v.Comparisons[best]))
	}
	words := make([]string, len(v.Comparisons))
	for i, c := range v.Comparisons {
		words[i] = c.Arm + " " + c.Verdict
	}
	return fmt.Sprintf("%s: nothing beats %s (%s; %s)", name, e.Baseline, strings.Join(words, ", "), pairsOf(v.Comparisons))
}

// answersShown bounds each list of the answers.
const answersShown = 12

// wrongShown bounds the list of misses in the answers.
const wrongShown = 5

func (d *Data) wrongPredictions() (out []string) {
	all := d.index().misses
	for _, m := range all[:min(len(all), wrongShown)] {
		out = append(out, fmt.Sprintf("%s of %s (run %s): predicted %s [%s, %s], measured %s, %s %%", m.q.name, orWord(m.run.Run.Model.Name, short(m.run.Run.Model.ID)),
			short(m.run.Run.RunID), m.q.write(m.s.Predicted), m.q.write(m.s.Lo), m.q.write(m.s.Hi), m.q.write(m.s.Measured), signedPercent(math.Expm1(m.error))))
	}
	if len(all) > wrongShown {
		out = append(out, fmt.Sprintf("and %d more, see Predictions", len(all)-wrongShown))
	}
	return out
}

func (d *Data) ceilings() (out []string) {
	for _, p := range d.index().storage {
		b := bestRate(storageCurve(p))
		out = append(out, fmt.Sprintf("%s: %s MB/s, with %s of %s KiB (measured %s)", machineName(d.machine(p.MachineID)), digits(b.BytesPerS/1e6, 4), count(b.Lanes, "lane", "lanes"), digits(float64(b.Size)/1024, 4), date(p.At)))
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
