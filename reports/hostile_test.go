package reports

import (
	"path/filepath"
	"strings"
	"testing"
)

// A ledger from somebody else may hold anything as an identifier, a name or a
// question: no file leaves the report's folder, nothing becomes markup.
func TestHostileLedgerStaysInTheFolderAndIsEscaped(t *testing.T) {
	const evil = `../../x"><script>alert(1)</script><img src=x onerror=alert(1)>`
	d := testData()
	for i := range d.Experiments {
		e := &d.Experiments[i]
		for j := range d.Runs {
			if d.Runs[j].ExperimentID == e.ID {
				d.Runs[j].ExperimentID = "../../" + e.ID
			}
		}
		for j := range d.Verdicts {
			if d.Verdicts[j].ExperimentID == e.ID {
				d.Verdicts[j].ExperimentID = "../../" + e.ID
			}
		}
		e.ID, e.Question = "../../"+e.ID, evil
		e.Model.Name, e.Machine.Label, e.Build.Commit = evil, evil, evil
		for k := range e.Arms {
			e.Arms[k].Value = evil
		}
	}
	for i := range d.Runs {
		r := &d.Runs[i].Run
		r.RunID, r.Model.Name, r.Machine.Label, r.Machine.CPU = "../../"+r.RunID, evil, evil, evil
		r.Warnings, r.Text, r.Stderr = []string{evil}, evil, evil
	}
	for i := range d.Events {
		d.Events[i].Why = evil
	}
	list, err := Files(d)
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, f := range list {
		if !filepath.IsLocal(f.Name) || filepath.Base(f.Name) != f.Name {
			t.Errorf("a file named %q", f.Name)
		}
		if strings.HasSuffix(f.Name, ".html") {
			pages++
			page := string(f.Bytes)
			if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") {
				t.Error("data became markup in the page")
			}
			if !strings.Contains(page, "&lt;script&gt;alert") {
				t.Error("the hostile text is not in the page at all: nothing was tested")
			}
		}
	}
	if pages != 1 {
		t.Errorf("%d pages", pages)
	}
}
