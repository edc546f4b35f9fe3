package reports

import (
	"strings"
	"testing"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

// The newest sweep that decided something answers for its lever; a newer one
// that was void does not take its place, and one declared void never answers.
func TestBestSettingIsOfASweepThatDecided(t *testing.T) {
	e, runs, v := testSweep()
	later, void := e, v
	later.ID, later.RegisteredAt = "later000", e.RegisteredAt.AddDate(0, 0, 1)
	void.ID, void.ExperimentID = "v2", later.ID
	void.Comparisons = []record.Comparison{{Arm: "8", Baseline: "1", Verdict: "void", Reason: "every run of io-threads 8 was killed"}}
	d := Data{Experiments: []record.Experiment{e, later}, Verdicts: []record.Verdict{v, void}, Runs: runs}
	got := strings.Join(d.bestSettings(), "\n")
	if !strings.Contains(got, "better: 4 decodes 12.3 % faster than 1") || !strings.Contains(got, "1 more sweep") {
		t.Errorf("the answer is %q", got)
	}
	d = Data{Experiments: d.Experiments, Verdicts: d.Verdicts, Runs: runs, Events: []record.Event{{Kind: record.EventVoid, Subject: e.ID, Why: "a backup ran"}}}
	if got := strings.Join(d.bestSettings(), "\n"); !strings.Contains(got, "nothing is known to beat 1 by more than 2.0 %: void: 8 against 1: every run") || strings.Contains(got, "12.3") {
		t.Errorf("with the first declared void the answer is %q", got)
	}
	if cells := strings.Join(d.findingsSection().Blocks[0].(Table).Rows[0], "|"); !strings.HasSuffix(cells, "|void") {
		t.Errorf("the finding of a void experiment is %q", cells)
	}
}

// A plan is set against each rival, the ones that died too, without figures
// that nobody measured.
func TestAnswerOfAPlan(t *testing.T) {
	e, runs, _ := testSweep()
	e.Lever, e.Kind, e.Baseline = "", "plan-vs-baseline", "plan"
	v := record.Verdict{ID: "p", ExperimentID: e.ID, Comparisons: []record.Comparison{{Arm: "plan", Baseline: "mmap", Verdict: "void", Reason: "every run of mmap was killed"}}}
	d := Data{Experiments: []record.Experiment{e}, Verdicts: []record.Verdict{v}, Runs: runs}
	got := strings.Join(d.bestSettings(), "\n")
	if want := "plan-vs-baseline on synth_1: void: plan against mmap: every run of mmap was killed"; got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	row := d.findingsSection().Blocks[0].(Table).Rows[0]
	if strings.Join(row[7:11], "|") != "0|–|–|–" {
		t.Errorf("a comparison without pairs shows figures: %q", row)
	}
}

// A rate of ten words of prompt is no rate of a whole pass.
func TestPrefillIsScoredByWholePasses(t *testing.T) {
	r := testRun(1, 1)
	r.Run.Prediction.PrefillTokensPerS = planner.Estimate{Known: true, Point: 400, Lo: 300, Hi: 500}
	r.Run.Config.UBatchSize = 256
	for tokens, want := range map[int64]int{10: 0, 255: 0, 256: 1, 600: 1} {
		r.Run.Measured.PromptTokens = tokens
		list := quantities[1].scored([]*record.StoredRun{&r}).list
		if len(list) != want {
			t.Errorf("a prompt of %d tokens gives %d scores, want %d", tokens, len(list), want)
		}
	}
}

// A region shown as an example in a code block stays as it is.
func TestRewriteLeavesExamples(t *testing.T) {
	const text = "An example:\n\n    <!-- bmoe:begin findings -->\n    <!-- bmoe:end findings -->\n\n<!-- bmoe:begin findings -->\n<!-- bmoe:end findings -->\n"
	got, err := Regions{"findings": "a table\n"}.Rewrite([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(text, "\n<!-- bmoe:end", "\na table\n<!-- bmoe:end", 1); string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}
