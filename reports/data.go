package reports

import (
	"cmp"
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
	Machines    []record.Machine // of profiles; runs and experiments name their own

	ix *index
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
	runs []*record.StoredRun
}

// byStart orders runs by time, then id: an order that does not depend on where
// they were stored.
func byStart(a, b *record.StoredRun) int {
	return cmp.Or(a.Run.StartedAt.Compare(b.Run.StartedAt), cmp.Compare(a.Run.RunID, b.Run.RunID))
}

// groups splits runs that are in order by setting, in the order of their first.
func groups(runs []*record.StoredRun) []group {
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

// span returns the first and last start of runs that are in order.
func span(runs []*record.StoredRun) (from, to time.Time) {
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
