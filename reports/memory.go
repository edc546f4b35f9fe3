package reports

import (
	"fmt"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

// newest returns the last run, of runs in order, for which keep holds.
func newest(runs []*record.StoredRun, keep func(*record.StoredRun) bool) (*record.StoredRun, bool) {
	for i := len(runs) - 1; i >= 0; i-- {
		if keep(runs[i]) {
			return runs[i], true
		}
	}
	return nil, false
}

// memorySection is the newest planned run's ledger of each model.
func (d *Data) memorySection() (Section, error) {
	s := Section{ID: "memory", Title: "Memory"}
	for _, m := range d.index().models {
		r, ok := newest(d.index().ofModel[m.ID], func(r *record.StoredRun) bool { return r.Run.Plan != nil && len(r.Run.Plan.Ledger) > 0 })
		if !ok {
			continue
		}
		name := orWord(m.Name, short(m.ID))
		f, ok, err := ledgerFigure("ledger-"+short(r.Run.RunID), name+", run "+short(r.Run.RunID), r.Run.Plan.Ledger)
		if err != nil {
			return s, err
		}
		if ok {
			s.Blocks = append(s.Blocks, f)
		}
		s.Blocks = append(s.Blocks, ledgerTable(r))
	}
	if len(s.Blocks) == 0 {
		s.Blocks = append(s.Blocks, Text("No planned run is stored yet: `bmoe run -m MODEL --auto` makes one."))
	}
	return s, nil
}

func ledgerTable(r *record.StoredRun) Table {
	run := &r.Run
	t := Table{
		Caption: fmt.Sprintf("Ledger of run %s; peak RSS %s MiB. %s; %s; n = 1 run.", short(run.RunID), mebibytes(float64(run.Measured.RSSBytes)),
			setting{run.Machine, run.Build, run.Model}.label(), date(run.StartedAt)),
		Columns: columns("row", "#MiB", "ceiling", "note"),
	}
	for _, l := range run.Plan.Ledger {
		ceiling := l.Ceiling
		if l.Ceiling == planner.CeilingLimit {
			ceiling = "is one"
		}
		t.Rows = append(t.Rows, []string{l.Row, mebibytes(float64(l.Bytes)), ceiling, l.Note})
	}
	return t
}

// timelineTokens is how many tokens make a timeline worth a look.
const timelineTokens = 32

// timeSection is where a token's time goes: the newest streamed run of each
// model as a timeline, and all of them as a table.
func (d *Data) timeSection() (Section, error) {
	s := Section{ID: "time", Title: "Where a token's time goes"}
	for _, m := range d.index().models {
		timed := func(tokens int) func(*record.StoredRun) bool {
			return func(r *record.StoredRun) bool {
				return r.Run.Config.MoeStream && len(r.Run.TokenNS) >= tokens && r.Run.State == record.StateDone && len(r.Void) == 0
			}
		}
		r, ok := newest(d.index().ofModel[m.ID], timed(timelineTokens))
		if !ok {
			r, ok = newest(d.index().ofModel[m.ID], timed(2))
		}
		if !ok {
			continue
		}
		f, ok, err := tokensFigure(r)
		if err != nil {
			return s, err
		}
		if ok {
			s.Blocks = append(s.Blocks, f)
		}
	}
	for _, g := range d.index().groups {
		if t := splitTable(g); len(t.Rows) > 0 {
			s.Blocks = append(s.Blocks, t)
		}
	}
	if len(s.Blocks) == 0 {
		s.Blocks = append(s.Blocks, Text("No streamed run with token times is stored yet."))
	}
	return s, nil
}

// splitTable is the mean split of the streamed runs of one setting, by their
// knobs.
func splitTable(g group) Table {
	type sum struct {
		runs, tokens        int
		total, wait, manage float64 // seconds
	}
	by := map[string]*sum{}
	var order []string
	used := 0
	for i := range g.runs {
		r := &g.runs[i].Run
		if !r.Config.MoeStream || r.State != record.StateDone || len(g.runs[i].Void) > 0 || len(r.TokenNS) == 0 || len(r.TokenWaitNS) != len(r.TokenNS) || len(r.TokenManageNS) != len(r.TokenNS) {
			continue
		}
		key := settings(&r.Config)
		if by[key] == nil {
			by[key] = &sum{}
			order = append(order, key)
		}
		used++
		b := by[key]
		b.runs++
		b.tokens += len(r.TokenNS)
		for n := range r.TokenNS {
			b.total += float64(r.TokenNS[n]) / 1e9
			b.wait += float64(r.TokenWaitNS[n]) / 1e9
			b.manage += float64(r.TokenManageNS[n]) / 1e9
		}
	}
	from, to := span(g.runs)
	t := Table{
		Caption: fmt.Sprintf("Mean time of a decoded token; %s; %s; n = %s.", g.label(), dates(from, to), analysis.Count(used, "run")),
		Columns: columns("settings", "#runs", "#tokens", "#ms/token", "#waiting for reads, ms", "#managing the cache, ms", "#compute and all else, ms", "#waiting %"),
	}
	for _, key := range order {
		b := by[key]
		n := float64(b.tokens) / 1000
		t.Rows = append(t.Rows, []string{key, fmt.Sprint(b.runs), fmt.Sprint(b.tokens), digits(b.total/n, 4), digits(b.wait/n, 3), digits(b.manage/n, 3), digits((b.total-b.wait-b.manage)/n, 4), percent(b.wait / b.total)})
	}
	return t
}
