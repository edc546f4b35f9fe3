package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// The test binary plays two parts in processes of its own: a child that
// answers like `bmoe run` with a known rate, and the whole program.
const (
	envFakeRun = "BMOE_TEST_FAKE_RUN" // how the child will behave; it is told by its arguments, for it has no such variable
	fakeRunArg = "fake-run"
	envProgram = "BMOE_TEST_PROGRAM" // arguments of the program, one a line
)

func TestHelperProcess(t *testing.T) {
	if flag.Arg(0) == fakeRunArg {
		os.Exit(fakeRun(flag.Arg(1)))
	}
	if args := os.Getenv(envProgram); args != "" {
		os.Unsetenv(envProgram) // for the children
		fakeChildren()
		os.Exit(Run(context.Background(), strings.Split(args, "\n"), os.Stdin, os.Stdout, os.Stderr))
	}
}

func fakeChildren() {
	childCommand = func() (string, []string, error) {
		path, err := os.Executable()
		return path, []string{"-test.run=^TestHelperProcess$", fakeRunArg, os.Getenv(envFakeRun)}, err
	}
}

// fakeRun answers with 10 t/s and 20 % more for each doubling of the lanes.
func fakeRun(how string) int {
	var c config.Config
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		fmt.Fprintln(os.Stderr, "bmoe:", err)
		return 2
	}
	if how == "slow" {
		time.Sleep(150 * time.Millisecond)
	}
	if how == "kill 4" && c.IOThreads == 4 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	scatter := 1 + 0.002*math.Sin(float64(time.Now().UnixNano()))
	r := record.Run{Schema: record.RunSchema, State: record.StateDone, Config: c, StartedAt: time.Now().UTC(), FinishedAt: time.Now().UTC(), TokenHash: "h"}
	r.Measured.DecodeSPerToken = 0.1 * scatter / math.Pow(1.2, math.Log2(float64(c.IOThreads)))
	r.Measured.DecodeTokens, r.Measured.PromptTokens = int64(c.Predict), 9
	r.Stats.Lanes = int64(c.IOThreads)
	if how == "pinned" || how == "refused" {
		if c.CachePin {
			r.Measured.DecodeSPerToken *= 0.8
		}
		if c.CachePin && how == "pinned" {
			r.Stats.CacheLockedBytes = 1 << 20
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return 1
	}
	return 0
}

// sweepBench is a folder with a small model, where children behave as told.
func sweepBench(t *testing.T, how string) (model, db string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // a lock of our own
	t.Setenv(envFakeRun, how)
	old := childCommand
	t.Cleanup(func() { childCommand = old })
	fakeChildren()
	model = filepath.Join(dir, "m.gguf")
	if code, _, stderr := runBmoe(t, "synth", "-o", model, "--layers", "2", "--experts", "8", "--experts-used", "2", "--embd", "64", "--ff", "32", "--vocab", "512"); code != exitOK {
		t.Fatal(stderr)
	}
	return model, filepath.Join(dir, "r.db")
}

func sweepJSON(t *testing.T, args ...string) sweepDocument {
	t.Helper()
	code, stdout, stderr := runBmoe(t, append([]string{"sweep", "--json", "--entry-wait", "0"}, args...)...)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var d sweepDocument
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	return d
}

func TestSweepFindsTheEffect(t *testing.T) {
	model, db := sweepBench(t, "")
	d := sweepJSON(t, "-m", model, "--db", db, "--lever", "io-threads", "--values", "1-4*2", "--pairs", "6", "--warmup", "1")
	if d.Pairs != 7 || d.Design != "blocks" || d.Metric != "decode" || len(d.Arms) != 3 || d.Arms[0].Runs != 7 || d.Schema != sweepSchema {
		t.Errorf("%+v", d)
	}
	for i, want := range []float64{0.2, 0.44} {
		c := d.Comparisons[i]
		if c.Verdict != "better" || math.Abs(c.Effect-want) > 0.01 || c.Level < 1-0.05/2 || c.PHolm > 0.05 || c.Pairs != 7 || c.Baseline != "1" {
			t.Errorf("%+v, want %v", c, want)
		}
	}
	code, stdout, stderr := runBmoe(t, "experiments", "show", d.ExperimentID[:8], "--db", db)
	if code != exitOK || !strings.Contains(stdout, "io-threads 4 decodes 4") || !strings.Contains(stdout, "% faster than 1 (98.4 % CI") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	checkRecomputed(t, db)
}

// checkRecomputed judges every stored experiment anew from the ledger.
func checkRecomputed(t *testing.T, db string) {
	t.Helper()
	s, err := results.Open(t.Context(), db, results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, err := s.Experiments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		runs, err := results.Conductor{Store: s}.Runs(t.Context(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := s.Verdicts(t.Context(), e.ID)
		if err != nil || len(stored) != 1 {
			t.Fatalf("%d verdicts, %v", len(stored), err)
		}
		again := experiments.Judge(e, runs)
		again.ID, again.Inputs = stored[0].ID, stored[0].Inputs
		if d := cmp.Diff(stored[0], again); d != "" {
			t.Errorf("judged from the ledger: %s", d)
		}
	}
}

func TestSweepKeepsAKilledArm(t *testing.T) {
	model, db := sweepBench(t, "kill 4")
	d := sweepJSON(t, "-m", model, "--db", db, "--lever", "io-threads=1,2,4", "--warmup", "0", "--pairs", "7")
	if d.Comparisons[0].Verdict != "better" || d.Comparisons[1].Verdict != "void" || !strings.Contains(d.Comparisons[1].Reason, "every run of io-threads 4 was killed") {
		t.Errorf("%+v", d.Comparisons)
	}
	if d.Arms[2].Outcomes["killed"] != 7 || !strings.Contains(d.Arms[2].Note, "7 killed: killed by SIGKILL") {
		t.Errorf("%+v", d.Arms[2])
	}
	code, _, stderr := runBmoe(t, "sweep", "--require", "--entry-wait", "0", "-m", model, "--db", db, "--lever", "io-threads=1,4", "--warmup", "0", "--pairs", "6")
	if code != exitUndecided || !strings.Contains(stderr, "4 against 1 is void") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestSweepVoidNamesTheCounter(t *testing.T) {
	model, db := sweepBench(t, "refused")
	d := sweepJSON(t, "-m", model, "--db", db, "--lever", "cache-pin", "--warmup", "0", "--pairs", "6")
	if c := d.Comparisons[0]; c.Verdict != "void" || c.Reason != "cache-pin did not act: cache_locked_bytes is 0 in both arms" {
		t.Errorf("%+v", c)
	}
	t.Setenv(envFakeRun, "pinned")
	d = sweepJSON(t, "-m", model, "--db", db, "--lever", "cache-pin", "--warmup", "0", "--pairs", "6")
	if c := d.Comparisons[0]; c.Verdict != "better" {
		t.Errorf("%+v", c)
	}
}

func TestSweepPredictAndAA(t *testing.T) {
	model, db := sweepBench(t, "")
	d := sweepJSON(t, "-m", model, "--db", db, "--lever", "io-threads", "--values", "1,2", "--predict", "better by 10%..30%", "--warmup", "0", "--pairs", "6")
	if c := d.Comparisons[0]; c.Predicted != "confirmed" || !strings.Contains(d.Falsifier, "10.0 to 30.0 % faster") {
		t.Errorf("%+v %q", c, d.Falsifier)
	}
	d = sweepJSON(t, "-m", model, "--db", db, "--aa", "--warmup", "0", "--pairs", "6")
	if c := d.Comparisons[0]; c.Verdict != "equivalent" || d.Kind != "aa" {
		t.Errorf("%+v", c)
	}
	code, _, stderr := runBmoe(t, "sweep", "-m", model, "--db", db, "--lever", "io-threads", "--dry-run")
	if code != exitOK || !strings.Contains(stderr, "measured by the A/A experiment "+d.ExperimentID[:12]) {
		t.Errorf("exit %d: %s", code, stderr)
	}
	_, stdout, _ := runBmoe(t, "experiments", "list", "--db", db, "--json")
	var l struct{ Experiments []experimentLine }
	if err := json.Unmarshal([]byte(stdout), &l); err != nil || len(l.Experiments) != 2 || l.Experiments[0].Status != "concluded" {
		t.Errorf("%v: %s", err, stdout)
	}
}

func TestSweepDryRunStoresNothing(t *testing.T) {
	model, db := sweepBench(t, "")
	code, stdout, stderr := runBmoe(t, "sweep", "-m", model, "--db", db, "--lever", "io-threads", "--values", "1,2,4,8", "--dry-run")
	want := `is a run that decodes faster with io-threads 2, 4, 8 than with 1?
refuted if the interval of the effect lies within the margin, or on the other side of no difference
blocks, seed 1, 8 pairs, margin 2 %

warm-up    1  2  4  8
block 1    2  8  1  4
block 2    1  2  4  8
block 3    8  4  2  1
block 4    4  1  8  2
block 5    4  1  2  8
block 6    2  4  8  1
block 7    8  2  1  4
block 8    1  8  4  2

36 runs; how long one takes is not known until the first
`
	if code != exitOK || stdout != want {
		t.Errorf("exit %d: %s", code, cmp.Diff(want, stdout))
	}
	if !strings.Contains(stderr, "8 pairs find an effect of ") || !strings.Contains(stderr, "80 % power") {
		t.Errorf("no detectable effect: %s", stderr)
	}
	if _, err := os.Stat(db); err == nil {
		t.Error("a dry run made a database")
	}
}

// Progress says arm, block, done of total and what is left, and no rate.
func TestSweepProgressHidesTheEffect(t *testing.T) {
	model, db := sweepBench(t, "slow")
	code, _, stderr := runBmoe(t, "sweep", "-m", model, "--db", db, "--lever", "io-threads", "--values", "1,2", "--pairs", "6", "--warmup", "1", "--entry-wait", "0")
	if code != exitOK {
		t.Fatal(stderr)
	}
	line := regexp.MustCompile(`^run \d+/14  (warm-up|block \d/6), arm [12](, about (\d+ s|\d+:\d\d min) left)?$`)
	n := 0
	for l := range strings.Lines(stderr) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "run ") {
			n++
			if !line.MatchString(l) {
				t.Errorf("progress line %q", l)
			}
		}
	}
	if n != 14 || strings.Contains(stderr, "t/s") || strings.Contains(stderr, "faster") {
		t.Errorf("%d lines: %s", n, stderr)
	}
}

func TestSweepRefuses(t *testing.T) {
	model, db := sweepBench(t, "")
	if e, _ := storedRuns(t, db); e.ID != "" { // an empty ledger, for --resume
		t.Fatal("the ledger is not empty")
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"--lever io-treads", "did you mean io-threads?"},
		{"", "no question asked"},
		{"--lever io-threads --aa", "ask different questions"},
		{"--lever io-threads --values 0,1", "--io-threads"},
		{"--lever io-threads --values 1,1", "listed twice"},
		{"--lever io-threads=1,2 --values 1,2", "given together"},
		{"--lever io-threads --margin 0", "--margin"},
		{"--lever io-threads --metric speed", "--metric"},
		{"--lever io-threads --design abba", "--design abba"},
		{"--lever io-threads --predict nonsense", "--predict"},
		{"--lever io-threads --pairs 0", "--pairs 0"},
		{"--lever io-threads --cache-state hot", "--cache-state"},
		{"--lever io-threads --looks 2", "--looks 2"},
		{"--lever io-threads --warmup -1", "--warmup"},
		{"--lever io-threads --baseline 99", "--baseline"},
		{"stray", "does not know"},
		{"--resume nope", "nope"},
		{"--resume", "no experiment was stopped"},
	} {
		args := append([]string{"sweep", "--db", db}, strings.Fields(c.args)...)
		if !strings.HasPrefix(c.args, "--resume") {
			args = append(args, "-m", model)
		}
		code, stdout, stderr := runBmoe(t, args...)
		if code != exitUsage || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%q: exit %d, %s", c.args, code, stderr)
		}
	}
	if code, _, stderr := runBmoe(t, "sweep", "--db", db, "-m", filepath.Join(t.TempDir(), "none.gguf"), "--lever", "io-threads"); code != exitUsage {
		t.Errorf("no model: exit %d, %s", code, stderr)
	}
}

func TestExperimentsVoid(t *testing.T) {
	model, db := sweepBench(t, "")
	d := sweepJSON(t, "-m", model, "--db", db, "--lever", "io-threads", "--values", "1,2", "--pairs", "6", "--warmup", "0")
	if code, _, stderr := runBmoe(t, "experiments", "void", d.ExperimentID[:10], "--db", db); code != exitUsage || !strings.Contains(stderr, "--why") {
		t.Errorf("no reason: exit %d, %s", code, stderr)
	}
	if code, _, stderr := runBmoe(t, "experiments", "void", d.ExperimentID[:10], "--db", db, "--why", "the drive was busy"); code != exitOK {
		t.Fatal(stderr)
	}
	_, stdout, _ := runBmoe(t, "experiments", "show", d.ExperimentID[:10], "--db", db)
	if !strings.Contains(stdout, "void: the drive was busy") {
		t.Errorf("%s", stdout)
	}
	if code, _, stderr := runBmoe(t, "sweep", "--resume", d.ExperimentID[:10], "--db", db); code != exitUsage || !strings.Contains(stderr, "declared void") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	for _, args := range [][]string{{"experiments", "show", "zzz"}, {"experiments", "show"}, {"experiments", "shwo"}} {
		if code, _, stderr := runBmoe(t, append(args, "--db", db)...); code != exitUsage || stderr == "" {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}
