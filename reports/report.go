package reports

import "strconv"

// New builds the report on everything in d.
func New(d Data) (*Document, error) {
	doc := &Document{Title: "bmoe report"}
	doc.Sections = append(doc.Sections, d.answersSection(), d.findingsSection(), d.negativeSection())
	for _, section := range []func() (Section, error){d.predictionsSection, d.hitsSection, d.storageSection, d.memorySection, d.timeSection} {
		s, err := section()
		if err != nil {
			return nil, err
		}
		doc.Sections = append(doc.Sections, s)
	}
	doc.Sections = append(doc.Sections, d.decisionsSection())
	sweeps, err := d.sweepSections()
	if err != nil {
		return nil, err
	}
	doc.Sections = append(append(doc.Sections, sweeps...), d.runsSection())
	return doc, nil
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
		for _, c := range v.Comparisons {
			if d.index().voided[e.ID] != "" {
				c.Verdict = "void"
			}
			t.Rows = append(t.Rows, append(append([]string(nil), who...), c.Arm, c.Baseline, strconv.Itoa(c.Pairs), change(c), interval(c), level(c), c.Verdict))
		}
	}
	if len(t.Rows) == 0 {
		s.Blocks = append(s.Blocks, Text("No experiment is stored yet."))
		return s
	}
	s.Blocks = append(s.Blocks, t)
	return s
}
