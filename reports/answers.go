package reports

import (
	"fmt"
	"math"

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

// bestSettings is one sentence for each experiment: its best arm if one won,
// and otherwise that none did and how many pairs said so.
func (d *Data) bestSettings() (out []string) {
	for _, e := range d.experiments() {
		v, ok := d.verdict(e.ID)
		if !ok || len(v.Comparisons) == 0 || e.Lever == "" {
			continue
		}
		name := fmt.Sprintf("%s on %s", e.Lever, orWord(e.Model.Name, short(e.Model.ID)))
		best := -1
		for i, c := range v.Comparisons {
			if c.Verdict == "better" && (best < 0 || c.Effect > v.Comparisons[best].Effect) {
				best = i
			}
		}
		if best >= 0 {
			out = append(out, fmt.Sprintf("%s: %s", name, sentence(v.Comparisons[best])))
			continue
		}
		text := fmt.Sprintf("%s: nothing beats %s (", name, e.Baseline)
		for i, c := range v.Comparisons {
			if i > 0 {
				text += ", "
			}
			text += c.Arm + " " + c.Verdict
		}
		out = append(out, fmt.Sprintf("%s; %s)", text, pairsOf(v.Comparisons)))
	}
	return out
}

// wrongShown bounds the list of misses in the answers.
const wrongShown = 5

func (d *Data) wrongPredictions() (out []string) {
	all := d.misses()
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
	for _, p := range d.storageProfiles() {
		b := bestRate(storageCurve(p))
		out = append(out, fmt.Sprintf("%s: %s MB/s, with %s of %s KiB (measured %s)", machineName(d.machine(p.MachineID)), digits(b.BytesPerS/1e6, 4), count(b.Lanes, "lane", "lanes"), digits(float64(b.Size)/1024, 4), date(p.At)))
	}
	return out
}

// drifts says of each experiment whether its rate moved over the schedule.
func (d *Data) drifts() (out []string) {
	for _, e := range d.experiments() {
		v, ok := d.verdict(e.ID)
		if !ok || v.Drift == nil {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s", experimentTitle(e), driftSentence(*v.Drift)))
	}
	return out
}

func driftSentence(t record.Trend) string {
	text := fmt.Sprintf("%s %% a run (%s %% CI %s to %s %%)", signedPercent(math.Expm1(t.Estimate)), percent(t.Level), signedPercent(math.Expm1(t.Lo)), signedPercent(math.Expm1(t.Hi)))
	if t.Lo > 0 || t.Hi < 0 {
		return "yes, " + text
	}
	return "none found, " + text
}
