package results

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// The size the ledger is built for.
const (
	scaleExperiments = 1000
	scaleRunsEach    = 20
	scaleSamples     = 250
	scaleTotal       = scaleExperiments * scaleRunsEach * scaleSamples
)

// scaleRuns are experiment n of a machine and its runs.
func scaleRuns(machine, n int) (record.Experiment, []record.StoredRun) {
	e := testExperiment(machine, n)
	runs := make([]record.StoredRun, scaleRunsEach)
	for i := range runs {
		slot := e.Schedule[i%len(e.Schedule)]
		slot.Index = i
		runs[i] = record.StoredRun{Run: testRun(machine, n*scaleRunsEach+i, scaleSamples), ExperimentID: e.ID, Slot: slot, Attempt: 1}
	}
	return e, runs
}

// buildScale fills a ledger and says how long storing took, leaving out the
// making of what is stored.
func buildScale(b *testing.B, path string, machine, experiments int) (storing time.Duration) {
	b.Helper()
	ctx := context.Background()
	s, err := Open(ctx, path, Options{})
	must(b, err)
	for n := range experiments {
		e, runs := scaleRuns(machine, n)
		start := time.Now()
		must(b, second(s.SaveExperiment(ctx, e)))
		must(b, second(s.SaveRuns(ctx, runs)))
		must(b, second(s.SaveVerdict(ctx, record.Verdict{ExperimentID: e.ID, Method: "m/1", Comparisons: []record.Comparison{{Arm: "4", Baseline: "1", Verdict: "better"}}})))
		storing += time.Since(start)
	}
	must(b, s.Close())
	return storing
}

// BenchmarkLedgerInsertRun stores one run a transaction, as a sweep does: each
// waits for the disk.
func BenchmarkLedgerInsertRun(b *testing.B) {
	ctx := context.Background()
	s := openTest(b, "r.db")
	e, _ := scaleRuns(1, 0)
	must(b, second(s.SaveExperiment(ctx, e)))
	const runs = 400
	var storing time.Duration
	for i := range b.N {
		for k := range runs {
			r := testRun(1, i*runs+k, scaleSamples)
			start := time.Now()
			must(b, second(s.SaveRun(ctx, r, e.ID, e.Schedule[k%4], 1)))
			storing += time.Since(start)
		}
	}
	b.ReportMetric(float64(b.N*runs*scaleSamples)/storing.Seconds(), "samples/s")
	b.ReportMetric(float64(storing.Milliseconds())/float64(b.N*runs), "ms/run")
}

// BenchmarkLedgerInsertExperiment stores an experiment's runs together, as an
// import does.
func BenchmarkLedgerInsertExperiment(b *testing.B) {
	const experiments = 50
	var storing time.Duration
	for i := range b.N {
		storing += buildScale(b, filepath.Join(b.TempDir(), "r.db"), i+1, experiments)
	}
	b.ReportMetric(float64(b.N*experiments*scaleRunsEach*scaleSamples)/storing.Seconds(), "samples/s")
}

// BenchmarkLedgerScale builds two ledgers of 1,000 experiments, 20,000 runs and
// 5 million token samples, and does with them what people do.
func BenchmarkLedgerScale(b *testing.B) {
	ctx := context.Background()
	for range b.N {
		dir := b.TempDir()
		one, two := filepath.Join(dir, "one.db"), filepath.Join(dir, "two.db")
		storing := buildScale(b, one, 1, scaleExperiments)
		buildScale(b, two, 2, scaleExperiments)
		b.ReportMetric(scaleTotal/storing.Seconds(), "samples/s")
		info, err := os.Stat(one)
		must(b, err)
		b.ReportMetric(float64(info.Size())/scaleTotal, "B/sample")
		b.ReportMetric(float64(info.Size())/(1<<20), "MiB")

		s, err := Open(ctx, one, Options{})
		must(b, err)
		timed(b, "load_s", func() {
			runs, err := s.Runs(ctx, RunFilter{})
			must(b, err)
			if len(runs) != scaleExperiments*scaleRunsEach {
				b.Fatalf("%d runs", len(runs))
			}
			must(b, second(s.Experiments(ctx)))
			must(b, second(s.Verdicts(ctx, "")))
		})
		timed(b, "load_samples_s", func() { must(b, second(s.Runs(ctx, RunFilter{Samples: true, Text: true}))) })
		timed(b, "merge_s", func() {
			rep, err := s.Merge(ctx, []string{two})
			must(b, err)
			if rep.Tables["run"].Inserted != scaleExperiments*scaleRunsEach {
				b.Fatalf("merge: %+v", rep)
			}
		})
		timed(b, "merge_again_s", func() { must(b, second(s.Merge(ctx, []string{two}))) })
		timed(b, "check_s", func() {
			rep, err := s.Check(ctx, Recompute{})
			must(b, err)
			if len(rep.Problems) > 0 {
				b.Fatalf("check: %v", rep.Problems)
			}
		})
		must(b, s.Close())
	}
}

func timed(b *testing.B, name string, do func()) {
	b.Helper()
	start := time.Now()
	do()
	b.ReportMetric(time.Since(start).Seconds(), name)
}
