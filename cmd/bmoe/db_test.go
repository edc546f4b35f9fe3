package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine/counters"
	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// dbRun is run n of a machine with an I/O lane count.
func dbRun(machine, n, lanes int) record.Run {
	at := time.Date(2026, 3, 1, machine, n, 0, 0, time.UTC)
	c := config.Default()
	c.Model, c.Prompt, c.MoeStream, c.IOThreads, c.CacheMB = "/home/alice/m.gguf", "the secret word", true, lanes, 64
	plan := planner.Plan{
		Config: c, Regime: "experts-stream", Reproduce: []string{"-m", c.Model, "--io-threads", fmt.Sprint(lanes)},
		Decisions: []planner.Decision{{Knob: "io-threads", Value: fmt.Sprint(lanes), Provenance: planner.Measured, Brief: "the drive reads fastest with this many", Topic: "lanes"}},
		Ledger:    []planner.LedgerRow{{Row: "expert cache", Bytes: 64 << 20, Ceiling: "holdable"}},
		Prediction: planner.Prediction{
			DecodeSPerToken: planner.Estimate{Known: true, Point: 0.05, Lo: 0.04, Hi: 0.06}, HitRate: planner.Estimate{Known: true, Point: 0.8, Lo: 0.75, Hi: 0.85},
		},
	}
	pred := record.NewPrediction(plan.Prediction, at.Add(-time.Second))
	perToken := 0.05 / float64(lanes) * (1 + float64(n%3)/100)
	return record.Run{
		Schema: record.RunSchema, StartedAt: at, FinishedAt: at.Add(20 * time.Second), State: record.StateDone,
		Machine:   record.Machine{OS: "linux", Arch: "amd64", CPU: fmt.Sprintf("CPU %d", machine), Cores: 2, RAMBytes: 8 << 30, Label: "alices-laptop"},
		Build:     record.Build{Commit: "0123456789abcdef", LlamaCPP: "v0.4.0"},
		Model:     record.Model{Name: "m.gguf", Arch: "qwen3moe", Quant: "q8_0", Bytes: 1 << 30, Layers: 16, Experts: 64, ExpertsUsed: 8, RoutedBytes: 900 << 20},
		EnvBefore: record.Environment{At: at, MemAvailable: 4 << 30, Load1: 0.2, CachedModelFrac: 0.25},
		EnvAfter:  record.Environment{At: at.Add(20 * time.Second), MemAvailable: 3 << 30, Load1: 1.1},
		Config:    c, Plan: &plan, Prediction: &pred, Pins: planner.Pins{"cache-mb": "64"},
		Measured: record.Measured{DecodeSPerToken: perToken, PrefillTokensPerS: 90, LoadS: 0.4, TTFTS: 0.5, HitRate: 0.6, BytesPerToken: 10 << 20, RSSBytes: 300 << 20, DecodeTokens: 6, PromptTokens: 8},
		Stats:    counters.Counters{Lookups: 100, Hits: 60, Misses: 40, DecodeLookups: 100, DecodeHits: 60, ComputeS: 0.2, WaitRouteS: 0.08, ManageS: 0.02, Lanes: int64(lanes), ExpertsRouted: 96, DecodeTokens: 6},
		Tokens:   []int32{1, 2, 3, 4, 5, 6}, TokenHash: "00", TokenNS: []int64{5e7, 4e7, 6e7, 5e7, 5e7, 9e7}, Text: "a tale of \x1b[31mred",
		Warnings: []string{"cache is small"},
	}
}

// dbLedger stores a concluded sweep and a lone run of a machine.
func dbLedger(t *testing.T, path string, machine int) (experiment, run string) {
	t.Helper()
	ctx := t.Context()
	s, err := results.Open(ctx, path, results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := dbRun(machine, 0, 1)
	q := experiments.Question{
		Kind: experiments.KindSweep, Lever: "io-threads", Metric: "decode", Pairs: 6, Seed: 1, Margin: 0.02, Alpha: 0.05,
		CacheState: experiments.CacheWarm, Machine: r.Machine, Build: r.Build, Model: r.Model, At: r.StartedAt.Add(-time.Hour),
		Arms: []record.Arm{{Name: "1", Value: "1", Config: dbRun(machine, 0, 1).Config}, {Name: "4", Value: "4", Config: dbRun(machine, 0, 4).Config}},
	}
	e, _, err := experiments.Register(q)
	if err != nil {
		t.Fatal(err)
	}
	c := results.Conductor{Store: s}
	if err := c.SaveExperiment(ctx, e); err != nil {
		t.Fatal(err)
	}
	for i, slot := range e.Schedule {
		lanes := 1
		if slot.Arm == "4" {
			lanes = 4
		}
		if err := c.SaveRun(ctx, dbRun(machine, i, lanes), e.ID, slot, 1); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := c.Runs(ctx, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SaveVerdict(ctx, experiments.Judge(e, runs)); err != nil {
		t.Fatal(err)
	}
	run, err = s.SaveRun(ctx, dbRun(machine, 30, 1), "", record.Slot{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e.ID, run
}

// ok runs a command that must succeed.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := runBmoe(t, args...)
	if code != exitOK {
		t.Fatalf("bmoe %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

func TestDBMergeAndCheck(t *testing.T) {
	dir := t.TempDir()
	a, b, team := filepath.Join(dir, "in", "a.db"), filepath.Join(dir, "in", "b.db"), filepath.Join(dir, "team.db")
	dbLedger(t, a, 1)
	dbLedger(t, b, 2)
	var rep results.MergeReport
	if err := json.Unmarshal([]byte(ok(t, "db", "merge", team, filepath.Join(dir, "in"), "--json")), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Tables["run"].Inserted != 26 || rep.Conflicts == nil {
		t.Errorf("merge: %+v", rep)
	}
	if out := ok(t, "db", "merge", team, b, a); !strings.HasPrefix(out, "0 rows inserted") {
		t.Errorf("merging again: %s", out)
	}
	out := ok(t, "db", "check", "--db", team)
	if !strings.Contains(out, "0 problems; 2 verdicts and fits recomputed to the same, 0 by methods not known here, 0 out of date") {
		t.Errorf("check: %s", out)
	}
	if out := ok(t, "db", "list", "--db", team); strings.Count(out, "13") < 2 || !strings.Contains(out, "m.gguf") {
		t.Errorf("list: %s", out)
	}
	if out := ok(t, "db", "info", "--db", team); !strings.Contains(out, "156 token samples") {
		t.Errorf("info: %s", out)
	}
}

func TestDBBadInput(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.db")
	dbLedger(t, good, 1)
	raw, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.db")
	if err := os.WriteFile(cut, raw[:len(raw)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no command":      {[]string{"db"}, exitUsage, "db needs a command"},
		"text":            {[]string{"db", "info", "--db", text}, exitData, "is not a SQLite database"},
		"cut":             {[]string{"db", "check", "--db", cut}, exitData, "is cut short"},
		"missing":         {[]string{"db", "info", "--db", filepath.Join(dir, "none.db")}, exitFailure, "no results are stored there"},
		"vacuum missing":  {[]string{"db", "vacuum", "--db", filepath.Join(dir, "none.db")}, exitFailure, "no results are stored there"},
		"merge one":       {[]string{"db", "merge", good}, exitUsage, "db merge takes"},
		"merge text":      {[]string{"db", "merge", good, text}, exitData, "is not a SQLite database"},
		"merge itself":    {[]string{"db", "merge", good, good}, exitFailure, "is the database to merge into"},
		"merge nothing":   {[]string{"db", "merge", good, filepath.Join(dir, "absent.db")}, exitFailure, "no database to merge from"},
		"format":          {[]string{"db", "export", "--db", good, "--format", "xml"}, exitUsage, `--format "xml"`},
		"parquet no path": {[]string{"db", "export", "--db", good, "--format", "parquet"}, exitUsage, "give -o a path"},
		"export whose":    {[]string{"db", "export", "--db", good, "--format", "csv", "--machine", "zz"}, exitUsage, "not found"},
		"export when":     {[]string{"db", "export", "--db", good, "--format", "csv", "--since", "soon"}, exitUsage, "neither a date"},
		"prune nothing":   {[]string{"db", "prune", "--db", good}, exitUsage, "nothing is named"},
		"prune when":      {[]string{"db", "prune", "--db", good, "--text", "--before", "soon"}, exitUsage, "neither a date"},
		"import text":     {[]string{"db", "import", "--db", good, text}, exitFailure, "line 1: not a llama-bench row"},
		"import where":    {[]string{"db", "import", "--db", good, text, "--machine", "zz"}, exitUsage, "--machine"},
		"show nothing":    {[]string{"show", "--db", good, "ffffffff0"}, exitUsage, "not found"},
		"show path":       {[]string{"show", "--db", good, "../x"}, exitUsage, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := runBmoe(t, c.args...)
			if code != c.code || !strings.Contains(errs, c.want) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, c.code, c.want, errs)
			}
		})
	}
	if after, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(after), "no database ") {
		t.Error("a file that is not ours was changed")
	}
}

func TestDBExportKeepsSecretsIn(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "r.db")
	exp, _ := dbLedger(t, db, 1)
	for _, format := range []string{"csv", "jsonl", "llama-bench-jsonl", "llama-bench-sql", "benchfmt"} {
		file := filepath.Join(dir, format)
		ok(t, "db", "export", "--db", db, "--format", format, "-o", file)
		raw, err := os.ReadFile(file)
		if err != nil || len(raw) == 0 {
			t.Fatalf("%s: %d bytes, %v", format, len(raw), err)
		}
		for _, secret := range []string{"alice", "secret word", "a tale"} {
			if strings.Contains(string(raw), secret) {
				t.Errorf("%s holds %q", format, secret)
			}
		}
		if stdout := ok(t, "db", "export", "--db", db, "--format", format); stdout != string(raw) {
			t.Errorf("%s differs between file and standard output", format)
		}
	}
	if out := ok(t, "db", "export", "--db", db, "--format", "jsonl", "--include-text"); !strings.Contains(out, "secret word") || !strings.Contains(out, "a tale") {
		t.Error("--include-text leaves the text out")
	}
	if out := ok(t, "db", "export", "--db", db, "--format", "csv", "--experiment", exp[:8]); strings.Count(out, "\n") != 13 {
		t.Errorf("%d lines of one experiment", strings.Count(out, "\n"))
	}
}

func TestDBImportOfPeers(t *testing.T) {
	dir := t.TempDir()
	db, file := filepath.Join(dir, "r.db"), filepath.Join(dir, "peer.jsonl")
	dbLedger(t, db, 1)
	ok(t, "db", "export", "--db", db, "--format", "llama-bench-jsonl", "-o", file)
	other := filepath.Join(dir, "other.db")
	first := ok(t, "db", "import", file, "--db", other)
	if !strings.HasPrefix(first, "26 rows inserted, 0 already there") {
		t.Errorf("import: %s", first)
	}
	if again := ok(t, "db", "import", file, "--db", other); !strings.HasPrefix(again, "0 rows inserted, 26 already there") {
		t.Errorf("import again: %s", again)
	}
	if out := ok(t, "db", "export", "--db", other, "--format", "csv"); strings.Count(out, ",llama-bench,") != 26 {
		t.Error("imported runs are not marked as llama-bench's")
	}
	ok(t, "db", "check", "--db", other)
}

func TestDBPruneAndVacuum(t *testing.T) {
	db := filepath.Join(t.TempDir(), "r.db")
	dbLedger(t, db, 1)
	if out := ok(t, "db", "prune", "--db", db, "--samples", "--dry-run"); !strings.HasPrefix(out, "would give up 13 of samples") {
		t.Errorf("dry run: %s", out)
	}
	ok(t, "db", "prune", "--db", db, "--samples", "--text", "--tokens")
	ok(t, "db", "vacuum", "--db", db)
	ok(t, "db", "check", "--db", db)
}

func TestShow(t *testing.T) {
	db := filepath.Join(t.TempDir(), "r.db")
	_, run := dbLedger(t, db, 1)
	out := ok(t, "show", run[:10], "--db", db, "--width", "72")
	for _, want := range []string{
		"run " + run[:12], "io-threads", "[measured] the drive reads fastest", "cache-mb", "[operator]",
		"0.05 s/token, predicted 0.05 [0.04, 0.06] s/token: inside", "60.0 %, predicted 80.0 [75.0, 85.0] %: outside", "before the run",
		"compute", "66.7 %", "median 50ms", "expert cache", "cache is small", "bmoe run -m /home/alice/m.gguf --io-threads 1",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) { // lines may break anywhere
			t.Errorf("the page lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colours without a terminal")
	}
	for i, line := range strings.Split(out, "\n") {
		if n := len([]rune(line)); n > 72 {
			t.Errorf("line %d has %d columns: %s", i+1, n, line)
		}
	}
	for i, line := range strings.Split(ok(t, "show", run, "--db", db, "--width", "60"), "\n") {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("of 60 columns, line %d has %d: %s", i+1, n, line)
		}
	}
	var doc record.StoredRun
	if err := json.Unmarshal([]byte(ok(t, "show", run, "--db", db, "--json")), &doc); err != nil || doc.Run.RunID != run {
		t.Errorf("--json: %v, %s", err, doc.Run.RunID)
	}
}

// A command line that is folded is still one to a shell.
func TestFoldedCommandCanBePasted(t *testing.T) {
	args := []string{"printf", "%s|", "--model", "/tmp/a model.gguf", "--prompt", "it's", "--io-threads", "4", "--cache-mb", "136"}
	p := &page{width: 40}
	p.command(args)
	if strings.Count(p.String(), "\\\n") < 2 {
		t.Fatalf("not folded at 40 columns:\n%s", p)
	}
	out, err := exec.Command("sh", "-c", p.String()).Output()
	if want := strings.Join(args[2:], "|") + "|"; err != nil || string(out) != want {
		t.Errorf("%v, %q, want %q from\n%s", err, out, want, p)
	}
}
