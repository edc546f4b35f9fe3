package main

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// BenchmarkLedgerReport writes the report of 1,000 experiments with 20,000 runs
// of 250 tokens, as `bmoe report --out` does, from the opening of the file to
// the last plot. BMOE_SCALE_DB names a file to keep that ledger in: filling it
// takes far longer than what is measured.
func BenchmarkLedgerReport(b *testing.B) {
	dir := b.TempDir()
	db := cmp.Or(os.Getenv("BMOE_SCALE_DB"), filepath.Join(dir, "scale.db"))
	if _, err := os.Stat(db); err != nil {
		fillScale(b, db, 1000, 20, 250)
	}
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		var out, errs bytes.Buffer
		if code := Run(b.Context(), []string{"report", "--db", db, "--out", filepath.Join(dir, "report")}, strings.NewReader(""), &out, &errs); code != exitOK {
			b.Fatalf("exit %d: %s", code, errs.String())
		}
		b.ReportMetric(time.Since(start).Seconds(), "report_s")
	}
}

// fillScale stores concluded sweeps of two arms.
func fillScale(b *testing.B, path string, sweeps, runs, tokens int) {
	b.Helper()
	ctx := b.Context()
	s, err := results.Open(ctx, path, results.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for n := range sweeps {
		first := dbRun(1, n, 1)
		e, _, err := experiments.Register(experiments.Question{
			Kind: experiments.KindSweep, Lever: "io-threads", Metric: "decode", Pairs: runs / 2, Seed: int64(n), Margin: 0.02, Alpha: 0.05,
			CacheState: experiments.CacheWarm, Machine: first.Machine, Build: first.Build, Model: first.Model, At: first.StartedAt,
			Arms: []record.Arm{{Name: "1", Value: "1", Config: first.Config}, {Name: "4", Value: "4", Config: dbRun(1, n, 4).Config}},
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.SaveExperiment(ctx, e); err != nil {
			b.Fatal(err)
		}
		var batch []record.StoredRun
		for i, slot := range e.Schedule {
			lanes := 1
			if slot.Arm == "4" {
				lanes = 4
			}
			r := dbRun(1, n, lanes)
			r.StartedAt = r.StartedAt.Add(time.Duration(n*runs+i) * time.Minute)
			r.TokenNS, r.TokenWaitNS, r.TokenManageNS = make([]int64, tokens), make([]int64, tokens), make([]int64, tokens)
			for k := range r.TokenNS {
				r.TokenNS[k] = int64(4e7 + (k*7919+i*104729)%2e7)
				r.TokenWaitNS[k], r.TokenManageNS[k] = int64(1e7+(k*6007+i*7907)%1e7), int64(2e5+(k*5003+i*6101)%1e5)
			}
			batch = append(batch, record.StoredRun{Run: r, ExperimentID: e.ID, Slot: slot, Attempt: 1})
		}
		if _, err := s.SaveRuns(ctx, batch); err != nil {
			b.Fatal(err)
		}
		if _, err := s.SaveVerdict(ctx, experiments.Judge(e, batch)); err != nil {
			b.Fatal(err)
		}
	}
}
