package reports

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// New builds the report on everything in d.
func New(d Data) (*Document, error) {
	d.index() // all sections look things up in it
	whole := func(s Section) ([]Section, error) { return []Section{s}, nil }
	drawn := func(s Section, err error) ([]Section, error) { return []Section{s}, err }
	parts := []func() ([]Section, error){
		func() ([]Section, error) { return whole(d.answersSection()) },
		func() ([]Section, error) { return whole(d.findingsSection()) },
		func() ([]Section, error) { return whole(d.negativeSection()) },
		func() ([]Section, error) { return drawn(d.predictionsSection()) },
		func() ([]Section, error) { return drawn(d.hitsSection()) },
		func() ([]Section, error) { return drawn(d.storageSection()) },
		func() ([]Section, error) { return drawn(d.memorySection()) },
		func() ([]Section, error) { return drawn(d.timeSection()) },
		func() ([]Section, error) { return drawn(d.decisionsSection()) },
		d.sweepSections,
		func() ([]Section, error) { return whole(d.runsSection()) },
	}
	sections := make([][]Section, len(parts))
	work := workers()
	for i, part := range parts {
		work.Go(func() (err error) {
			sections[i], err = part()
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return &Document{Title: "bmoe report", Sections: slices.Concat(sections...)}, nil
}

// findingsSection is one line for every comparison, wins or not.
func (d *Data) findingsSection() Section {
	s := Section{ID: "findings", Title: "Findings"}
	t := Table{
		Caption: "Every comparison of every experiment, as registered. Levels are those attained.",
		Columns: columns("experiment", "model", "machine", "build", "registered", "arm", "baseline", "#pairs", "#change %", "#interval %", "#level %", "verdict"),
	}
	for _, e := range d.index().experiments {
		who := []string{experimentTitle(e), orWord(e.Model.Name, short(e.Model.ID)), machineName(e.Machine), buildName(e.Build), date(e.RegisteredAt)}
		v, ok := d.verdict(e.ID)
		if !ok {
			t.Rows = append(t.Rows, append(who, none, e.Baseline, none, none, none, none, "no verdict"))
		}
		for _, cells := range d.outcomes(e, v) {
			t.Rows = append(t.Rows, slices.Concat(who, cells))
		}
	}
	if len(t.Rows) == 0 {
		s.Blocks = append(s.Blocks, Text("No experiment is stored yet."))
		return s
	}
	t.Caption += fmt.Sprintf(" n = %s.", analysis.Count(len(d.index().experiments), "experiment"))
	s.Blocks = append(s.Blocks, t)
	return s
}

// outcomes are an experiment's comparisons, a row each: arm, baseline, pairs,
// change, interval, level, verdict.
func (d *Data) outcomes(e record.Experiment, v record.Verdict) (rows [][]string) {
	for _, c := range v.Comparisons {
		if d.index().voided[e.ID] != "" {
			c.Verdict = "void"
		}
		rows = append(rows, []string{c.Arm, c.Baseline, strconv.Itoa(c.Pairs), change(c), interval(c), level(c), c.Verdict})
	}
	return rows
}
