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
	if got := strings.Join(d.bestSettings(), "\n"); !strings.Contains(got, "none is known to be more than 2.0 % better than 1. Found: void: 8 against 1: every run") || strings.Contains(got, "12.3") {
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

// What a stranger is told first: the best arm and what it is not told from, how
// the predictions lay, which arms refuted theirs, how many sweeps drifted.
func TestAnswersToAStranger(t *testing.T) {
	d := testData()
	e, _, v := testSweep()
	v.Comparisons[1].Verdict, v.Comparisons[1].Effect, v.Comparisons[1].Lo, v.Comparisons[1].Hi = "better", 0.1, 0.06, 0.11
	v.Predictions[0].Verdict, v.Predictions[0].Reason = "refuted", "the whole interval lies outside the predicted band"
	v.Drift = &record.Trend{Estimate: -0.004, Lo: -0.006, Hi: -0.002, Level: 0.95}
	d.Verdicts = []record.Verdict{v}
	doc, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	page, err := doc.Sections[0].Markdown("")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### Which setting is best here", "4 does best. Found: better: 4 decodes 12.3 % faster than 1", "their intervals do not tell it from 8",
		"### What did the planner get wrong?", experimentTitle(e) + ", arm 4: the prediction is refuted: the whole interval",
		"### What is the drive's ceiling?", "### Did anything drift?", "1 of 1 experiment drifted", "yes, -0.4 % a run",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the answers lack %q:\n%s", want, page)
		}
	}
	v.Comparisons[1].Hi = 0.09 // below the best one's interval
	d.ix, d.Verdicts = nil, []record.Verdict{v}
	if got := strings.Join(d.bestSettings(), "\n"); strings.Contains(got, "not tell it from") {
		t.Errorf("arms whose intervals are apart are told apart: %s", got)
	}
}

// Of quantities that always lay inside their interval the reader is told too.
func TestWrongPredictionsSayWhatHeld(t *testing.T) {
	a, b := testRun(1, 1), testRun(2, 1)
	for _, r := range []*record.StoredRun{&a, &b} {
		r.Run.Prediction.DecodeSPerToken = planner.Estimate{Known: true, Point: 0.1, Lo: 0.09, Hi: 0.11}
		r.Run.Measured.DecodeSPerToken = 0.2
		r.Run.Prediction.BytesPerToken = planner.Estimate{Known: true, Point: 1 << 20, Lo: 1 << 19, Hi: 1 << 21}
		r.Run.Measured.BytesPerToken = 1 << 20
	}
	d := Data{Runs: []record.StoredRun{a, b}}
	got := strings.Join(d.wrongPredictions(), "\n")
	for _, want := range []string{"decode, s/token: 2 of 2 measurements outside", "all 2 on average +100.0 % off what was predicted", "always inside their interval: ", "decode, bytes/token (n = 2)"} {
		if !strings.Contains(got, want) {
			t.Errorf("the answer lacks %q: %s", want, got)
		}
	}
}
