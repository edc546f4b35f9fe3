package reports

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// isWin reports whether a verdict is what somebody hoped for.
func isWin(verdict string) bool { return verdict == "better" || verdict == "confirmed" }

// negativeSection is everything that was no win: it is kept and shown.
func (d *Data) negativeSection() Section {
	s := Section{ID: "negative", Title: "Undecided, void, refuted, worse"}
	t := Table{
		Caption: "Every finding that is no win, with its reason. Levels are those attained.",
		Columns: columns("experiment", "registered", "model", "machine", "build", "arm", "#pairs", "#change %", "#interval %", "#level %", "verdict", "why"),
	}
	for _, e := range d.index().experiments {
		v, ok := d.verdict(e.ID)
		row := func(cells ...string) {
			who := []string{experimentTitle(e), date(e.RegisteredAt), orWord(e.Model.Name, short(e.Model.ID)), machineName(e.Machine), buildName(e.Build)}
			t.Rows = append(t.Rows, append(who, cells...))
		}
		if void := d.index().voided[e.ID]; void != "" {
			row("all", none, none, none, none, "void", void)
		}
		if !ok {
			row("all", none, none, none, none, "no verdict", fmt.Sprintf("%d of %d runs are stored", len(d.index().ofExperiment[e.ID]), len(e.Schedule)))
			continue
		}
		for _, c := range append(append([]record.Comparison(nil), v.Comparisons...), v.Predictions...) {
			if !isWin(c.Verdict) {
				row(orWord(c.Arm, none)+" against "+c.Baseline, strconv.Itoa(c.Pairs), change(c), interval(c), level(c), c.Verdict, c.Reason)
			}
			if c.Predicted != "" && !isWin(c.Predicted) {
				row(c.Arm+", registered band", strconv.Itoa(c.Pairs), change(c), interval(c), level(c), c.Predicted, c.PredictedReason)
			}
		}
	}
	switch {
	case len(d.Experiments) == 0:
		s.Blocks = append(s.Blocks, Text("No experiment is stored yet."))
	case len(t.Rows) == 0:
		s.Blocks = append(s.Blocks, Text("Every finding so far is a win."))
	default:
		t.Caption += fmt.Sprintf(" n = %s.", analysis.Count(len(t.Rows), "finding"))
		s.Blocks = append(s.Blocks, t)
	}
	if m := d.missesTable(); len(m.Rows) > 0 {
		s.Blocks = append(s.Blocks, m)
	}
	if r := d.failedRuns(); len(r.Rows) > 0 {
		s.Blocks = append(s.Blocks, r)
	}
	return s
}

// failedRuns lists the runs that died, were stopped or do not count.
func (d *Data) failedRuns() Table {
	t := Table{Columns: columns("run", "started (UTC)", "model", "settings", "state", "error")}
	var failed []*record.StoredRun
	for _, g := range d.index().groups {
		for _, r := range g.runs {
			if r.Run.State != record.StateDone || len(r.Void) > 0 {
				failed = append(failed, r)
				t.Rows = append(t.Rows, []string{short(r.Run.RunID), minute(r.Run.StartedAt), orWord(g.model.Name, short(g.model.ID)), settings(&r.Run.Config), state(r), firstLine(r.Run.Error)})
			}
		}
	}
	t.Caption = fmt.Sprintf("Runs that did not finish or do not count; %s; n = %s.", whereAndWhen(failed), analysis.Count(len(failed), "run"))
	return t
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
