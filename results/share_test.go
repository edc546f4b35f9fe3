package results

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/bmoe/bmoe/results/record"
)

// secrets are the words of the fixtures that must not leave.
var secrets = []string{"alice", "secret prompt", "Once upon", "/home/", "route,csv"}

// mergedCopy merges a shared copy into an empty ledger, which must then be sound.
func mergedCopy(t *testing.T, path string) *Store {
	t.Helper()
	other := openTest(t, "other.db")
	must(t, second(other.Merge(t.Context(), []string{path})))
	check, err := other.Check(t.Context(), Recompute{})
	must(t, err)
	if len(check.Problems) > 0 {
		t.Errorf("check of a merged shared copy: %v", check.Problems)
	}
	return other
}

func leaks(t *testing.T, what string, content []byte) {
	t.Helper()
	for _, word := range secrets {
		if bytes.Contains(content, []byte(word)) {
			t.Errorf("%s holds %q", what, word)
		}
	}
}

func TestSharedCopyHoldsNothingPrivate(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := openTest(t, "r.db")
	exp, _ := fill(t, s, 1)
	must(t, second(s.SaveTrace(ctx, record.Trace{ModelID: testModel(0).ID, At: epoch, CSV: []byte("route,csv\n")})))
	r := testRun(1, 7, 3)
	must(t, s.second3(s.RegisterPlan(ctx, r.Machine, r.Build, r.Model, *r.Plan, epoch)))

	path := filepath.Join(dir, "out", "shared.db")
	must(t, second(s.ExportDB(ctx, path, false)))
	raw, err := os.ReadFile(path)
	must(t, err)
	leaks(t, "shared copy", raw)
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a shared copy leaves a log beside it")
	}
	if _, err := s.ExportDB(ctx, path, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("overwriting: %v", err)
	}

	other := mergedCopy(t, path)
	got, err := other.Experiment(ctx, exp)
	must(t, err)
	if got.Arms[1].Config.IOThreads != 4 || got.Arms[1].Config.Prompt != "" {
		t.Errorf("arm of a shared experiment: %+v", got.Arms[1])
	}
	// Merging the full ledger over the shared copy adds what was left out.
	rep, err := other.Merge(ctx, []string{s.path})
	must(t, err)
	if rep.Tables["run"].Inserted != 0 || rep.Tables["private"].Inserted == 0 || rep.Tables["trace"].Inserted != 1 {
		t.Errorf("full ledger over the shared one: %+v", rep)
	}
	d1, _ := s.Digest(ctx)
	if d2, _ := other.Digest(ctx); d1 != d2 {
		t.Error("the two ledgers differ")
	}

	full := filepath.Join(dir, "full.db")
	must(t, second(s.ExportDB(ctx, full, true)))
	if digest(t, full) != d1 {
		t.Error("an export with text is not the whole ledger")
	}
}

func (s *Store) second3(_, _ string, err error) error { return err }

func TestPrune(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	exp, runs := fill(t, s, 1)
	must(t, s.Void(ctx, runs[4], "wrong model"))
	dry, err := s.Prune(ctx, PruneOptions{Samples: true, DryRun: true})
	must(t, err)
	if dry.Rows["samples"] != 5 {
		t.Errorf("dry run: %+v", dry)
	}
	if rep, err := s.Prune(ctx, PruneOptions{Before: "2026-03-01", Samples: true, Text: true}); err != nil || len(rep.Rows) != 0 {
		t.Errorf("nothing is that old: %+v, %v", rep, err)
	}
	if _, err := s.Prune(ctx, PruneOptions{Before: "yesterday-ish", Samples: true}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no such time: %v", err)
	}
	rep, err := s.Prune(ctx, PruneOptions{VoidRuns: true})
	must(t, err)
	if rep.Rows["run"] != 1 || rep.Rows["samples"] != 1 || rep.Rows["event"] != 1 {
		t.Errorf("void runs: %+v", rep)
	}
	rep, err = s.Prune(ctx, PruneOptions{Samples: true, Tokens: true, Text: true})
	must(t, err)
	if rep.Rows["samples"] != 4 || rep.Rows["tokens"] != 4 {
		t.Errorf("samples: %+v", rep)
	}
	must(t, s.Vacuum(ctx))
	check, err := s.Check(ctx, Recompute{})
	must(t, err)
	if len(check.Problems) > 0 {
		t.Errorf("check after pruning: %v", check.Problems)
	}
	got, err := s.Runs(ctx, RunFilter{Experiment: exp, Samples: true, Text: true})
	must(t, err)
	if len(got) != 4 || got[0].Run.Measured.DecodeSPerToken == 0 || got[0].Run.TokenNS != nil {
		t.Errorf("runs after pruning: %+v", got)
	}
	if _, err := s.writer.ExecContext(ctx, "DELETE FROM run"); err == nil {
		t.Error("runs can be deleted after a prune")
	}
	log, err := s.Log(ctx, 10)
	must(t, err)
	if len(log) != 2 || log[0].Kind != "prune" {
		t.Errorf("log: %+v", log)
	}
	info, err := s.Info(ctx)
	must(t, err)
	if info.Schema != SchemaVersion() || info.Samples != 80 || info.Bytes == 0 {
		t.Errorf("info: %+v", info)
	}
}
