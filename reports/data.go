package reports

import (
	"cmp"
	"slices"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// Data is what a report is made from.
type Data struct {
	Runs        []record.StoredRun
	Experiments []record.Experiment
	Verdicts    []record.Verdict
	Profiles    []record.Profile
	Histograms  []record.Histogram
	Fits        []record.Fit
	Events      []record.Event
}

// setting is what must be equal for two runs' figures to stand in one table.
type setting struct {
	machine record.Machine
	build   record.Build
	model   record.Model
}

func (s setting) key() string { return s.machine.ID + "\x00" + s.build.ID + "\x00" + s.model.ID }

// group is the runs of one setting, oldest first.
type group struct {
	setting
	runs []record.StoredRun
}

// byStart orders runs by time, then id: an order that does not depend on where
// they were stored.
func byStart(a, b record.StoredRun) int {
	return cmp.Or(a.Run.StartedAt.Compare(b.Run.StartedAt), cmp.Compare(a.Run.RunID, b.Run.RunID))
}

// groups splits runs by setting, in the order of their first runs.
func groups(runs []record.StoredRun) []group {
	runs = slices.SortedFunc(slices.Values(runs), byStart)
	at := map[string]int{}
	var out []group
	for _, r := range runs {
		s := setting{r.Run.Machine, r.Run.Build, r.Run.Model}
		i, ok := at[s.key()]
		if !ok {
			i = len(out)
			at[s.key()] = i
			out = append(out, group{setting: s})
		}
		out[i].runs = append(out[i].runs, r)
	}
	return out
}

// experiments returns the experiments, oldest first.
func (d *Data) experiments() []record.Experiment {
	return slices.SortedFunc(slices.Values(d.Experiments), func(a, b record.Experiment) int {
		return cmp.Or(a.RegisteredAt.Compare(b.RegisteredAt), cmp.Compare(a.ID, b.ID))
	})
}

// verdict returns the verdict on an experiment by the newest method.
func (d *Data) verdict(experiment string) (v record.Verdict, ok bool) {
	for _, c := range d.Verdicts {
		if c.ExperimentID == experiment && (!ok || cmp.Or(cmp.Compare(c.Method, v.Method), cmp.Compare(c.ID, v.ID)) > 0) {
			v, ok = c, true
		}
	}
	return v, ok
}

// runsOf returns an experiment's runs in schedule order. Of a slot that was run
// again the last attempt counts; void runs stay, marked.
func (d *Data) runsOf(experiment string) []record.StoredRun {
	last := map[int]record.StoredRun{}
	for _, r := range d.Runs {
		if r.ExperimentID != experiment {
			continue
		}
		if old, ok := last[r.Slot.Index]; !ok || old.Attempt < r.Attempt {
			last[r.Slot.Index] = r
		}
	}
	var out []record.StoredRun
	for _, r := range last {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b record.StoredRun) int { return cmp.Compare(a.Slot.Index, b.Slot.Index) })
	return out
}

// span returns the first and last start of runs that are in order.
func span(runs []record.StoredRun) (from, to time.Time) {
	if len(runs) == 0 {
		return from, to
	}
	from, to = runs[0].Run.StartedAt, runs[0].Run.StartedAt
	for _, r := range runs {
		if t := r.Run.StartedAt; t.Before(from) {
			from = t
		} else if t.After(to) {
			to = t
		}
	}
	return from, to
}
