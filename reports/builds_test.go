package reports

import (
	"slices"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/results/record"
)

// A run that was killed has no CPU module, nor has an experiment: neither is by
// another build.
func TestKilledRunIsOfTheSameBuild(t *testing.T) {
	d := testData()
	d.Runs = slices.Clone(d.Runs)
	bare := testBuild()
	bare.ID, bare.CPUModule = "build1-unsaid", ""
	for i := range d.Experiments {
		d.Experiments[i].Build = bare
	}
	killed := &d.Runs[25].Run
	if killed.State != record.StateKilled {
		t.Fatal("the fixture's killed run has moved")
	}
	killed.Build = bare
	doc, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	page, err := doc.Markdown("")
	if err != nil {
		t.Fatal(err)
	}
	if text := string(page); strings.Contains(text, "2 builds") || strings.Contains(text, "llama.cpp v0.4.0;") || strings.Contains(text, "llama.cpp v0.4.0 |") {
		t.Errorf("the build without its module is shown as another:\n%s", text)
	}
	if killed.Build != bare {
		t.Error("the caller's run was changed")
	}
}

func TestABuildOfTwoModulesStaysUnsaid(t *testing.T) {
	m := testMachine()
	bare, a, b := testBuild(), testBuild(), testBuild()
	bare.CPUModule, a.CPUModule, b.CPUModule = "", "haswell", "zen4"
	runs := make([]record.StoredRun, 2)
	runs[0].Run.Machine, runs[0].Run.Build = m, a
	runs[1].Run.Machine, runs[1].Run.Build = m, b
	if got := whole(wholeBuilds(runs[:1]), m, bare); got != a {
		t.Errorf("one module known: %+v", got)
	}
	if got := whole(wholeBuilds(runs), m, bare); got != bare {
		t.Errorf("two modules known: %+v", got)
	}
	other := m
	other.ID = "another"
	if got := whole(wholeBuilds(runs[:1]), other, bare); got != bare {
		t.Errorf("known of another machine only: %+v", got)
	}
}
