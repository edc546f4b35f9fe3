package reports

import "strconv"

// New builds the report on everything in d.
func New(d Data) (*Document, error) {
	doc := &Document{Title: "bmoe report"}
	doc.Sections = append(doc.Sections, d.findingsSection())
	sweeps, err := d.sweepSections()
	if err != nil {
		return nil, err
	}
	predictions, err := d.predictionsSection()
	if err != nil {
		return nil, err
	}
	doc.Sections = append(doc.Sections, predictions)
	doc.Sections = append(doc.Sections, sweeps...)
	doc.Sections = append(doc.Sections, d.runsSection())
	return doc, nil
}

// findingsSection is one line for every comparison, wins or not.
func (d *Data) findingsSection() Section {
	s := Section{ID: "findings", Title: "Findings"}
	t := Table{
		Caption: "Every comparison of every experiment, as registered. Levels are those attained.",
		Columns: columns("experiment", "model", "arm", "baseline", "#pairs", "#change %", "#interval %", "#level %", "verdict"),
	}
	for _, e := range d.experiments() {
		v, ok := d.verdict(e.ID)
		if !ok {
			t.Rows = append(t.Rows, []string{experimentTitle(e), orWord(e.Model.Name, short(e.Model.ID)), none, e.Baseline, none, none, none, none, "no verdict"})
		}
		for _, c := range v.Comparisons {
			t.Rows = append(t.Rows, []string{
				experimentTitle(e), orWord(e.Model.Name, short(e.Model.ID)), c.Arm, c.Baseline,
				strconv.Itoa(c.Pairs), signedPercent(c.Effect), interval(c), percent(c.Level), c.Verdict,
			})
		}
	}
	if len(t.Rows) == 0 {
		s.Blocks = append(s.Blocks, Text("No experiment is stored yet."))
		return s
	}
	s.Blocks = append(s.Blocks, t)
	return s
}

// predictionsSection is predicted against measured.
func (d *Data) predictionsSection() (Section, error) {
	s := Section{ID: "predictions", Title: "Predictions"}
	f, ok, err := predictedFigure(d.Runs)
	if err != nil {
		return s, err
	}
	if !ok {
		s.Blocks = append(s.Blocks, Text("No run has both a prediction and a measured rate yet."))
		return s, nil
	}
	s.Blocks = append(s.Blocks, f)
	return s, nil
}

// File is one file of a report.
type File struct {
	Name  string
	Bytes []byte
}

// Files renders a report as the files of a folder: report.md and its plots.
func Files(d Data) ([]File, error) {
	doc, err := New(d)
	if err != nil {
		return nil, err
	}
	page, err := doc.Markdown("")
	if err != nil {
		return nil, err
	}
	out := []File{{"report.md", page}}
	for _, f := range doc.Figures() {
		out = append(out, File{f.Name + ".svg", f.SVG}, File{f.Name + ".png", f.PNG})
	}
	return out, nil
}
