package reports

import (
	"cmp"
	"slices"

	"github.com/bmoe/bmoe/results/record"
)

// index is the records in order, and by what sections look them up. It is made
// once: ledgers hold tens of thousands of runs, and every section asks for some.
type index struct {
	runs         []*record.StoredRun // oldest first
	experiments  []record.Experiment
	groups       []group
	models       []record.Model
	ofModel      map[string][]*record.StoredRun
	ofExperiment map[string][]*record.StoredRun
	verdicts     map[string]record.Verdict
	voided       map[string]string
	machines     map[string]record.Machine
	scores       []scores // by quantity
	misses       []miss
	storage      []record.Profile
}

// index returns the records in order. They must not change afterwards.
func (d *Data) index() *index {
	if d.ix == nil {
		d.ix = newIndex(d)
	}
	return d.ix
}

func newIndex(d *Data) *index {
	builds := wholeBuilds(d.Runs)
	ix := &index{
		runs: inOrder(d.Runs, builds), experiments: experimentsInOrder(d.Experiments, builds), models: modelsOf(d.Runs),
		ofModel: map[string][]*record.StoredRun{}, ofExperiment: map[string][]*record.StoredRun{}, verdicts: newestVerdicts(d.Verdicts),
		voided: map[string]string{}, machines: map[string]record.Machine{}, storage: storageProfiles(d.Profiles),
	}
	ix.groups = groups(ix.runs)
	for i := range ix.runs {
		r := ix.runs[i]
		ix.ofModel[r.Run.Model.ID] = append(ix.ofModel[r.Run.Model.ID], r)
		ix.machines[r.Run.Machine.ID] = r.Run.Machine
		if r.ExperimentID != "" {
			ix.ofExperiment[r.ExperimentID] = append(ix.ofExperiment[r.ExperimentID], r)
		}
	}
	for id, runs := range ix.ofExperiment {
		ix.ofExperiment[id] = lastAttempts(runs)
	}
	for i := range ix.experiments {
		ix.addMachine(ix.experiments[i].Machine)
	}
	for _, m := range d.Machines {
		ix.addMachine(m)
	}
	for _, ev := range d.Events {
		if _, ok := ix.voided[ev.Subject]; !ok && ev.Kind == record.EventVoid {
			ix.voided[ev.Subject] = ev.Why
		}
	}
	for i := range quantities {
		ix.scores = append(ix.scores, quantities[i].scored(ix.runs))
	}
	ix.misses = misses(ix.scores)
	return ix
}

func (ix *index) addMachine(m record.Machine) {
	if ix.machines[m.ID].ID == "" {
		ix.machines[m.ID] = m
	}
}

// inOrder returns runs oldest first, with their whole builds. Stores give them
// in order already.
func inOrder(runs []record.StoredRun, builds map[program]record.Build) []*record.StoredRun {
	out := make([]*record.StoredRun, len(runs))
	for i := range runs {
		out[i] = &runs[i]
		if b := whole(builds, runs[i].Run.Machine, runs[i].Run.Build); b.ID != runs[i].Run.Build.ID {
			r := runs[i] // the caller's stays as it was stored
			r.Run.Build = b
			out[i] = &r
		}
	}
	if !slices.IsSortedFunc(out, byStart) {
		slices.SortFunc(out, byStart)
	}
	return out
}

func experimentsInOrder(list []record.Experiment, builds map[program]record.Build) []record.Experiment {
	out := slices.SortedFunc(slices.Values(list), func(a, b record.Experiment) int {
		return cmp.Or(a.RegisteredAt.Compare(b.RegisteredAt), cmp.Compare(a.ID, b.ID))
	})
	for i := range out {
		out[i].Build = whole(builds, out[i].Machine, out[i].Build)
	}
	return out
}

// newestVerdicts keeps, of each experiment, the verdict by the newest method.
func newestVerdicts(list []record.Verdict) map[string]record.Verdict {
	out := make(map[string]record.Verdict, len(list))
	for _, v := range list {
		old, ok := out[v.ExperimentID]
		if !ok || cmp.Or(cmp.Compare(v.Method, old.Method), cmp.Compare(v.ID, old.ID)) > 0 {
			out[v.ExperimentID] = v
		}
	}
	return out
}

// lastAttempts puts runs in schedule order. Of a slot that was run again the
// last attempt counts; void runs stay, marked.
func lastAttempts(runs []*record.StoredRun) []*record.StoredRun {
	last := map[int]int{}
	for i := range runs {
		if old, ok := last[runs[i].Slot.Index]; !ok || runs[old].Attempt < runs[i].Attempt {
			last[runs[i].Slot.Index] = i
		}
	}
	out := make([]*record.StoredRun, 0, len(last))
	for _, i := range last {
		out = append(out, runs[i])
	}
	slices.SortFunc(out, func(a, b *record.StoredRun) int { return cmp.Compare(a.Slot.Index, b.Slot.Index) })
	return out
}

// verdict returns the verdict that stands on an experiment.
func (d *Data) verdict(experiment string) (record.Verdict, bool) {
	v, ok := d.index().verdicts[experiment]
	return v, ok
}

// machine finds a machine by its id among runs, experiments and profiles.
func (d *Data) machine(id string) record.Machine {
	if m, ok := d.index().machines[id]; ok {
		return m
	}
	return record.Machine{ID: id}
}
