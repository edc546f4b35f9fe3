package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// reportLedger stores one run and one experiment without a verdict.
func reportLedger(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.db")
	s, err := results.Open(t.Context(), path, results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	machine := record.Machine{CPU: "Example CPU", Cores: 2, RAMBytes: 8 << 30}
	model := record.Model{Name: "synth", Arch: "llama", Quant: "Q8_0", Bytes: 1 << 20, Layers: 1, Experts: 2, ExpertsUsed: 1}
	cfg := config.Default()
	cfg.MoeStream = true
	pred := record.NewPrediction(planner.Prediction{DecodeSPerToken: planner.Estimate{Known: true, Point: 0.01, Lo: 0.009, Hi: 0.012}}, at)
	run := record.Run{
		Schema: record.RunSchema, StartedAt: at, FinishedAt: at, State: record.StateDone, Machine: machine, Model: model, Config: cfg, Prediction: &pred,
		Measured: record.Measured{DecodeSPerToken: 0.0105, HitRate: 0.5, BytesPerToken: 1 << 19, DecodeTokens: 8},
	}
	if _, err := s.SaveRun(t.Context(), run, "", record.Slot{}, 0); err != nil {
		t.Fatal(err)
	}
	exp := record.Experiment{
		Question: "Does it help?", Lever: "overlap", Kind: "sweep", Metric: "decode", Design: "abba", Pairs: 8, Margin: 0.02, Alpha: 0.05, Baseline: "off",
		Arms: []record.Arm{{Name: "off"}, {Name: "on"}}, RegisteredAt: at, Machine: machine, Model: model,
	}
	if _, err := s.SaveExperiment(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReportWritesPageAndPlots(t *testing.T) {
	db, out := reportLedger(t), filepath.Join(t.TempDir(), "report")
	code, stdout, stderr := runBmoe(t, "report", "--db", db, "--out", out)
	if code != exitOK || !strings.Contains(stdout, "1 run, 1 experiment") {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	page, err := os.ReadFile(filepath.Join(out, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.01000 [0.009000, 0.01200]", "0.01050", "50.0", "0.5000", "Does it help?", "No verdict stands: 0 of 0 runs are stored.", "1 of n = 1 measured inside"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("report.md lacks %q:\n%s", want, page)
		}
	}
	for _, name := range []string{"predicted-decode.svg", "predicted-decode.png"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	code, printed, _ := runBmoe(t, "report", "--db", db)
	if code != exitOK || printed != string(page) {
		t.Error("the page on standard output is not the page in the folder")
	}
}

func TestReportFailsPlainly(t *testing.T) {
	notOurs := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(notOurs, []byte("hello, this is no database at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	db := reportLedger(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--db", filepath.Join(t.TempDir(), "none.db")}, exitFailure, "run something first"},
		{[]string{"--db", notOurs}, exitData, "is not a SQLite database"},
		{[]string{"--db", db, "--docs", filepath.Join(t.TempDir(), "none")}, exitUsage, "is no folder"},
		{[]string{"--db", db, "--out", "/dev/null/x"}, exitFailure, "give a folder"},
	} {
		code, out, errs := runBmoe(t, append([]string{"report"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want exit %d and %q", c.args, code, out, errs, c.code, c.want)
		}
	}
}

// docsTree is a README and a folder of documents with regions, and a ledger.
func docsTree(t *testing.T) (root, docs string) {
	t.Helper()
	root = t.TempDir()
	docs = filepath.Join(root, "docs")
	if err := os.MkdirAll(filepath.Join(docs, "results"), 0o755); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(reportLedger(t))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{
		filepath.Join(root, "README.md"):            []byte("We have <!-- bmoe:begin value:runs -->?<!-- bmoe:end value:runs --> run.\n"),
		filepath.Join(docs, "found.md"):             []byte("# Found\n<!-- bmoe:begin predictions -->\n<!-- bmoe:end predictions -->\n"),
		filepath.Join(docs, "plain.md"):             []byte("nothing generated\n"),
		filepath.Join(docs, "results", "sample.db"): raw,
		filepath.Join(docs, "results", "old.svg"):   []byte("<svg/>"),
	} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, docs
}

func TestReportDocs(t *testing.T) {
	root, docs := docsTree(t)
	if code, out, _ := runBmoe(t, "report", "--docs", docs, "--check"); code != exitFailure || !strings.Contains(out, "README.md, line 1, region value:runs") || !strings.Contains(out, "old.svg: no longer generated") {
		t.Fatalf("check before: exit %d\n%s", code, out)
	}
	if code, _, errs := runBmoe(t, "report", "--docs", docs); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if code, out, errs := runBmoe(t, "report", "--docs", docs, "--check"); code != exitOK || out != "" {
		t.Errorf("check after: exit %d, %s\n%s", code, errs, out)
	}
	for path, want := range map[string]string{
		filepath.Join(root, "README.md"):                       "We have <!-- bmoe:begin value:runs -->1<!-- bmoe:end value:runs --> run.",
		filepath.Join(docs, "found.md"):                        "(results/predicted-decode.svg)",
		filepath.Join(docs, "results", "report.md"):            "(predicted-decode.svg)",
		filepath.Join(docs, "results", "report.html"):          "<!doctype html>",
		filepath.Join(docs, "results", "negative.md"):          "no verdict",
		filepath.Join(docs, "results", "predicted-decode.svg"): "<svg",
		filepath.Join(docs, "plain.md"):                        "nothing generated",
	} {
		raw, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %v, no %q in\n%s", path, err, want, raw)
		}
	}
	// A figure changed by hand is found, with its place.
	page := filepath.Join(docs, "found.md")
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte(strings.Replace(string(raw), "1 of n = 1", "2 of n = 1", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, _ := runBmoe(t, "report", "--docs", docs, "--check")
	if code != exitFailure || !strings.Contains(out, "found.md, line 5, region predictions:") || !strings.Contains(out, "-Predicted against") {
		t.Errorf("check of a changed figure: exit %d\n%s", code, out)
	}
}

func TestReportFormats(t *testing.T) {
	db := reportLedger(t)
	for format, want := range map[string]string{"html": "<!doctype html>", "csv": "of,run,started (UTC)", "json": `"schema": "bmoe.report/1"`, "md": "# bmoe report"} {
		code, out, errs := runBmoe(t, "report", "--db", db, "--format", format)
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, %s, no %q in\n%.400s", format, code, errs, want, out)
		}
	}
}
