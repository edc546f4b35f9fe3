package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// startProgram runs the program in a process of its own.
func startProgram(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestHelperProcess$")
	cmd.Env = append(os.Environ(), envProgram+"="+strings.Join(args, "\n"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &stderr
}

func storedRuns(t *testing.T, db string) (e record.Experiment, runs []record.StoredRun) {
	t.Helper()
	s, err := results.Open(t.Context(), db, results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, err := s.Experiments(t.Context())
	if err != nil || len(all) > 1 {
		t.Fatalf("%d experiments, %v", len(all), err)
	}
	if len(all) == 0 {
		return e, nil
	}
	runs, err = results.Conductor{Store: s}.Runs(t.Context(), all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return all[0], runs
}

// A sweep killed outright at several moments goes on by the same schedule, with
// no run lost and none stored twice.
func TestSweepKilledAndResumed(t *testing.T) {
	model, db := sweepBench(t, "slow")
	cmd, _ := startProgram(t, "sweep", "-m", model, "--db", db, "--lever", "io-threads", "--values", "1,2", "--pairs", "6", "--warmup", "0", "--entry-wait", "0")
	var first record.Experiment
	before := map[string]bool{}
	for sitting := range 4 {
		time.Sleep(time.Duration(900+230*sitting) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		e, runs := storedRuns(t, db)
		if first.ID == "" {
			first = e
		} else if d := cmp.Diff(first, e); d != "" {
			t.Fatalf("the experiment changed: %s", d)
		}
		now := map[string]bool{}
		for _, r := range runs {
			now[r.Run.RunID] = true
		}
		for id := range before {
			if !now[id] {
				t.Fatalf("run %s was lost", id)
			}
		}
		before = now
		cmd, _ = startProgram(t, "sweep", "--db", db, "--resume", "--entry-wait", "5s")
	}
	if err := cmd.Wait(); err != nil {
		t.Logf("last sitting: %v", err)
	}
	e, runs := storedRuns(t, db)
	seen := map[string]int{}
	for _, r := range runs {
		if r.Slot != e.Schedule[r.Slot.Index] {
			t.Errorf("run at %+v, scheduled %+v", r.Slot, e.Schedule[r.Slot.Index])
		}
		seen[fmt.Sprint(r.Slot.Index, "/", r.Attempt)]++
	}
	for at, n := range seen {
		if n != 1 {
			t.Errorf("slot/attempt %s is stored %d times", at, n)
		}
	}
	if left := experiments.Remaining(&e, runs); left != 0 {
		t.Errorf("%d runs left of %d; %d stored", left, len(e.Schedule), len(runs))
	}
	checkRecomputed(t, db)
	code, stdout, _ := runBmoe(t, "experiments", "list", "--db", db)
	if code != exitOK || !strings.Contains(stdout, "[better]") {
		t.Errorf("exit %d, %s", code, stdout)
	}
}

// Ctrl-C stores what was run and prints the command that goes on; it works.
func TestSweepInterrupted(t *testing.T) {
	model, db := sweepBench(t, "slow")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(1500*time.Millisecond, cancel)
	var out, errs bytes.Buffer
	code := Run(ctx, []string{"sweep", "-m", model, "--db", db, "--lever", "io-threads", "--values", "1,2", "--pairs", "6", "--entry-wait", "0"}, strings.NewReader(""), &out, &errs)
	m := regexp.MustCompile(`go on with: bmoe (sweep --resume [0-9a-f]{12} --db \S+)`).FindStringSubmatch(errs.String())
	if code != exitInterrupted || m == nil || !strings.Contains(errs.String(), "runs are stored") {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	again := append(strings.Fields(m[1]), "--pairs", "8")
	if code, _, stderr := runBmoe(t, again...); code != exitUsage || !strings.Contains(stderr, "--pairs was registered") {
		t.Errorf("another design: exit %d, %s", code, stderr)
	}
	again = append(strings.Fields(m[1]), "-t", "7")
	if code, _, stderr := runBmoe(t, again...); code != exitUsage || !strings.Contains(stderr, "--threads 7: experiment") {
		t.Errorf("another knob: exit %d, %s", code, stderr)
	}
	code, stdout, stderr := runBmoe(t, strings.Fields(m[1])...)
	if code != exitOK || !strings.Contains(stdout, ": better") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	checkRecomputed(t, db)
	code, _, stderr = runBmoe(t, strings.Fields(m[1])...)
	if code != exitOK || !strings.Contains(stderr, "already concluded") {
		t.Errorf("resumed again: exit %d, %s", code, stderr)
	}
}

// A sweep whose runs are all stored, but which died before its verdict was, is
// found by --resume and concluded without another run.
func TestSweepThatLacksOnlyItsVerdictIsConcluded(t *testing.T) {
	model, whole := sweepBench(t, "")
	want := sweepJSON(t, "-m", model, "--db", whole, "--lever", "io-threads", "--values", "1,2", "--pairs", "6", "--warmup", "0")
	e, runs := storedRuns(t, whole)
	db := filepath.Join(filepath.Dir(whole), "died.db")
	storeWithoutVerdict(t, db, e, runs)
	if code, stdout, stderr := runBmoe(t, "experiments", "list", "--db", db); code != exitOK || strings.Contains(stdout, "[better]") {
		t.Fatalf("exit %d, %s%s: nothing was tested", code, stdout, stderr)
	}
	code, stdout, stderr := runBmoe(t, "sweep", "--resume", "--json", "--db", db)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var got sweepDocument
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.Comparisons, got.Comparisons); d != "" || got.ExperimentID != want.ExperimentID {
		t.Errorf("%s is concluded as %s, not %s: %s", db, got.ExperimentID, want.ExperimentID, d)
	}
	if _, after := storedRuns(t, db); len(after) != len(runs) {
		t.Errorf("%d runs are stored, %d were", len(after), len(runs))
	}
	checkRecomputed(t, db)
}

func storeWithoutVerdict(t *testing.T, db string, e record.Experiment, runs []record.StoredRun) {
	t.Helper()
	s, err := results.Open(t.Context(), db, results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := results.Conductor{Store: s}
	if err := c.SaveExperiment(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if err := c.SaveRun(t.Context(), r.Run, e.ID, r.Slot, r.Attempt); err != nil {
			t.Fatal(err)
		}
	}
}
