package results

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/results/record"
)

func TestRunComesBackWhole(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	want := testRun(1, 0, 50)
	id, err := s.SaveRun(ctx, want, "", record.Slot{}, 0)
	must(t, err)
	if id != want.ContentID() {
		t.Errorf("stored under %s, content id %s", id, want.ContentID())
	}
	got, err := s.Run(ctx, id[:10])
	must(t, err)
	want.RunID = id
	if diff := cmp.Diff(want, got.Run); diff != "" {
		t.Errorf("run changed in the ledger (-want +got):\n%s", diff)
	}
	if again, err := s.SaveRun(ctx, want, "", record.Slot{}, 0); err != nil || again != id {
		t.Errorf("saving again: %s, %v", again, err)
	}
	all, err := s.Runs(ctx, RunFilter{})
	must(t, err)
	if len(all) != 1 || all[0].Run.Text != "" || all[0].Run.Config.Prompt != "" || all[0].Run.Tokens != nil {
		t.Errorf("a plain query gives private text or samples: %+v", all)
	}
}

func TestPredictionIsRegisteredBeforeTheRun(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	r := testRun(1, 0, 5)
	planID, predID, err := s.RegisterPlan(ctx, r.Machine, r.Build, r.Model, *r.Plan, r.Prediction.MadeAt)
	must(t, err)
	r.Prediction = &record.Prediction{Prediction: r.Prediction.Prediction, MadeAt: r.Prediction.MadeAt}
	id, err := s.SaveRun(ctx, r, "", record.Slot{}, 0)
	must(t, err)
	if stored, err := s.Run(ctx, id); err != nil || stored.Run.Prediction.Falsifier == "" {
		t.Errorf("the run does not have the registered prediction: %+v, %v", stored.Run.Prediction, err)
	}
	preds, err := s.Predictions(ctx)
	must(t, err)
	if len(preds) != 1 || preds[0].ID != predID || preds[0].PlanID != planID {
		t.Fatalf("predictions: %+v", preds)
	}
	if diff := cmp.Diff(r.Plan, preds[0].Plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if preds[0].Falsifier == "" || preds[0].Tolerance != 0.4000000000000001 && preds[0].Tolerance != 0.4 {
		t.Errorf("falsifier %q, tolerance %v", preds[0].Falsifier, preds[0].Tolerance)
	}
}

func TestExperimentAndVerdict(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	id, runs := fill(t, s, 1)
	e, err := s.Experiment(ctx, id[:8])
	must(t, err)
	if diff := cmp.Diff(testExperiment(1, 0), e); diff != "" {
		t.Errorf("experiment (-want +got):\n%s", diff)
	}
	got, err := s.Runs(ctx, RunFilter{Experiment: id[:8]})
	must(t, err)
	if len(got) != 4 || got[3].Slot.Arm != "4" || got[3].Attempt != 1 || got[0].ExperimentID != id {
		t.Errorf("runs of the experiment: %+v", got)
	}
	v, err := s.Verdicts(ctx, id)
	must(t, err)
	if len(v) != 1 {
		t.Fatalf("%d verdicts", len(v))
	}
	must(t, s.Void(ctx, runs[0][:12], "a backup ran"))
	if v, _ = s.Verdicts(ctx, id); len(v) != 0 {
		t.Error("a verdict stands though one of its runs is void")
	}
	if got, _ = s.Runs(ctx, RunFilter{Experiment: id}); len(got) != 3 {
		t.Errorf("%d runs count, want 3", len(got))
	}
	if got, _ = s.Runs(ctx, RunFilter{Experiment: id, IncludeVoid: true}); len(got) != 4 || len(got[0].Void) != 1 {
		t.Errorf("void run is not marked: %+v", got)
	}
}

func TestRunFilter(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	fill(t, s, 1)
	fill(t, s, 2)
	for _, c := range []struct {
		name string
		f    RunFilter
		want int
	}{
		{"all", RunFilter{}, 10},
		{"machine", RunFilter{Machine: testMachine(2).ID}, 5},
		{"model", RunFilter{Model: testModel(0).ID}, 10},
		{"state", RunFilter{State: record.StateFailed}, 0},
		{"since", RunFilter{Since: epoch.Add(2 * time.Hour).Format(time.RFC3339)}, 6},
		{"until a date", RunFilter{Until: "2026-03-01"}, 0},
		{"limit", RunFilter{Limit: 3}, 3},
	} {
		got, err := s.Runs(ctx, c.f)
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %d runs, %v; want %d", c.name, len(got), err, c.want)
		}
	}
	for _, when := range []string{"yesterday", "now", "2026", "2026-13-01", "12:00:00.1"} {
		if _, err := s.Runs(ctx, RunFilter{Since: when}); !errors.Is(err, ErrInvalid) {
			t.Errorf("since %s: %v", when, err)
		}
	}
	if _, err := s.Runs(ctx, RunFilter{Experiment: "zz"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown experiment: %v", err)
	}
}

func TestRefusedWhatCannotBeStored(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	e := testExperiment(1, 0)
	must(t, second(s.SaveExperiment(ctx, e)))
	r := testRun(1, 0, 5)
	if _, err := s.SaveRun(ctx, r, e.ID, record.Slot{Arm: "no such arm"}, 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown arm: %v", err)
	}
	if _, err := s.SaveRun(ctx, r, "nosuch", record.Slot{Arm: "1"}, 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown experiment: %v", err)
	}
	r.Measured.HitRate = nan()
	if _, err := s.SaveRun(ctx, r, "", record.Slot{}, 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("NaN: %v", err)
	}
	e.Pairs++
	if _, err := s.SaveExperiment(ctx, e); !errors.Is(err, ErrInvalid) {
		t.Errorf("experiment changed under its id: %v", err)
	}
	if got, err := s.Runs(ctx, RunFilter{}); err != nil || len(got) != 0 {
		t.Errorf("a refused run is stored half: %d runs, %v", len(got), err)
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "r.db")
	s, err := Open(context.Background(), path, Options{})
	must(t, err)
	defer s.Close()
	fill(t, s, 1)
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(p)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
	}
}

func TestAppendOnly(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	fill(t, s, 1)
	for _, table := range []string{"run", "prediction", "experiment"} {
		for _, verb := range []string{"UPDATE " + table + " SET body = '{}'", "DELETE FROM " + table} {
			if _, err := s.writer.ExecContext(ctx, verb); err == nil {
				t.Errorf("%s went through", verb)
			}
		}
	}
}

// A lean reading leaves the surroundings out and nothing else; more rows than a
// batch holds come whole, in order.
func TestRunsLeanAndMany(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	var runs []record.StoredRun
	for n := range 2*chunk + 7 {
		runs = append(runs, record.StoredRun{Run: testRun(1, n, 2)})
	}
	must(t, second(s.SaveRuns(ctx, runs)))
	whole, err := s.Runs(ctx, RunFilter{Samples: true})
	must(t, err)
	lean, err := s.Runs(ctx, RunFilter{Samples: true, Lean: true})
	must(t, err)
	if len(whole) != len(runs) || len(lean) != len(runs) {
		t.Fatalf("%d and %d of %d runs", len(whole), len(lean), len(runs))
	}
	for i := range whole {
		if i > 0 && whole[i].Run.StartedAt.Before(whole[i-1].Run.StartedAt) {
			t.Fatalf("run %d is out of order", i)
		}
		if whole[i].Run.EnvBefore.At.IsZero() || !lean[i].Run.EnvBefore.At.IsZero() {
			t.Fatalf("surroundings of run %d: %v, lean %v", i, whole[i].Run.EnvBefore.At, lean[i].Run.EnvBefore.At)
		}
		whole[i].Run.EnvBefore, whole[i].Run.EnvAfter = record.Environment{}, record.Environment{}
	}
	if diff := cmp.Diff(whole, lean); diff != "" {
		t.Errorf("lean differs (-whole +lean):\n%s", diff)
	}
	few, err := s.Runs(ctx, RunFilter{Limit: 3, Lean: true})
	must(t, err)
	if len(few) != 3 || few[2].Run.RunID != lean[len(lean)-1].Run.RunID {
		t.Errorf("the newest three: %d", len(few))
	}
}
