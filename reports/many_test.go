package reports

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// Of more experiments than a page draws, the newest have sections and plots,
// the others are counted, and every one of them stays in the findings.
func TestManyExperiments(t *testing.T) {
	e, runs, v := testSweep()
	d := Data{Runs: runs}
	const more = 5
	for i := range sweepsShown + more {
		c, w := e, v
		c.ID, w.ExperimentID, w.ID = fmt.Sprintf("exp%05d", i), fmt.Sprintf("exp%05d", i), fmt.Sprint(i)
		c.RegisteredAt = e.RegisteredAt.AddDate(0, 0, i)
		d.Experiments, d.Verdicts = append(d.Experiments, c), append(d.Verdicts, w)
	}
	all := files(t, d)
	page := string(all["report.md"])
	for i := range sweepsShown + more {
		name := fmt.Sprintf("exp%05d", i)
		if drawn := strings.Contains(page, "## Sweep of io-threads ("+name+")"); drawn != (i >= more) {
			t.Errorf("experiment %d of %d has a section: %v", i, sweepsShown+more, drawn)
		}
		if _, ok := all["arms-"+name+".png"]; ok != (i >= more) {
			t.Errorf("experiment %d is drawn: %v", i, ok)
		}
		if !strings.Contains(page, "| Sweep of io-threads ("+name+") ") {
			t.Errorf("experiment %d is not among the findings", i)
		}
	}
	for _, want := range []string{
		fmt.Sprintf("The newest %d of %d experiments have a section", sweepsShown, sweepsShown+more), "report --experiment ID --out DIR",
		fmt.Sprintf("%d more sweeps of the same or other levers", sweepsShown+more-1),
		fmt.Sprintf("0 of %d experiments drifted", sweepsShown+more),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

var rowZero = regexp.MustCompile(`row0\b`)

// A page shows the last rows of a long table and says so; JSON has all.
func TestLongTablesAreCutOnPages(t *testing.T) {
	table := Table{Caption: "Rows.", Columns: columns("#n")}
	for i := range pageRows + 3 {
		table.Rows = append(table.Rows, []string{fmt.Sprint("row", i)})
	}
	doc := &Document{Sections: []Section{{ID: "runs", Title: "Rows", Blocks: []Block{table}}}}
	note := fmt.Sprintf("Rows. The last %d of %d rows are shown; `--format json` has all.", pageRows, pageRows+3)
	for format, whole := range map[string]bool{"md": false, "html": false, "csv": true, "json": true} {
		f, err := Render(doc, format)
		if err != nil {
			t.Fatal(err)
		}
		text := string(f.Bytes)
		if !strings.Contains(text, "row3") || !strings.Contains(text, "row402") {
			t.Errorf("%s lacks rows", format)
		}
		if first := rowZero.MatchString(text); first != whole {
			t.Errorf("%s holds the first row: %v", format, first)
		}
		if said := strings.Contains(strings.ReplaceAll(text, "\\`", "`"), note); said == whole {
			t.Errorf("%s says that rows are left out: %v", format, said)
		}
	}
}
