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
	run := record.Run{Schema: record.RunSchema, StartedAt: at, FinishedAt: at, State: record.StateDone, Machine: machine, Model: model, Config: cfg, Prediction: &pred,
		Measured: record.Measured{DecodeSPerToken: 0.0105, HitRate: 0.5, BytesPerToken: 1 << 19, DecodeTokens: 8}}
	if _, err := s.SaveRun(t.Context(), run, "", record.Slot{}, 0); err != nil {
		t.Fatal(err)
	}
	exp := record.Experiment{Question: "Does it help?", Lever: "overlap", Kind: "sweep", Metric: "decode", Design: "abba", Pairs: 8, Margin: 0.02, Alpha: 0.05, Baseline: "off",
		Arms: []record.Arm{{Name: "off"}, {Name: "on"}}, RegisteredAt: at, Machine: machine, Model: model}
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
	if code != exitOK || !strings.Contains(stdout, "3 files, 1 runs, 1 experiments") {
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
		{[]string{"--db", db, "--experiment", "ffff"}, exitFailure, "ffff"},
		{[]string{"--db", db, "--out", "/dev/null/x"}, exitFailure, "give --out a folder"},
	} {
		code, out, errs := runBmoe(t, append([]string{"report"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want exit %d and %q", c.args, code, out, errs, c.code, c.want)
		}
	}
}
