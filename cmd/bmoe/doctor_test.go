package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/probes"
)

// healthy is a machine on which nothing is missing; tests break one thing.
func healthy(t *testing.T) checkup {
	t.Helper()
	host := probes.Local()
	host.Files = fstest.MapFS{
		"proc/meminfo": {Data: []byte("MemTotal: 8000000 kB\nMemFree: 6000000 kB\nMemAvailable: 6000000 kB\nCached: 0 kB\nShmem: 0 kB\nSwapFree: 0 kB\n")},
	}
	return checkup{
		host:        host,
		db:          filepath.Join(t.TempDir(), "deep", "results.db"),
		libraries:   func() (string, string, error) { return "/opt/bmoe/lib", "haswell", nil },
		locks:       lockable(planner.MeasuredFact[int64](1<<30, 0, "limit of 1 GiB")),
		directReads: func(string) error { return nil },
	}
}

func lockable(f planner.Fact[int64]) func(planner.Fact[int64]) planner.LockFacts {
	return func(planner.Fact[int64]) planner.LockFacts { return planner.LockFacts{InPlace: f} }
}

func smallModel(t *testing.T) string {
	t.Helper()
	s := synth.Default()
	s.Layers, s.Experts, s.Used, s.Embd, s.FF, s.Vocab = 2, 4, 2, 64, 64, 512
	path := filepath.Join(t.TempDir(), "small.gguf")
	if _, err := synth.Write(t.Context(), path, s, synth.Options{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDoctorFindings(t *testing.T) {
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("these are notes, not results"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		damage func(c *checkup)
		find   string // the finding that changes
		state  string
		says   string
	}{
		"libraries gone": {func(c *checkup) {
			c.libraries = func() (string, string, error) { return "", "", errors.New("libllama is not there") }
		}, "llama.cpp", stateMissing, "libllama is not there"},
		"cpu module":           {func(*checkup) {}, "cpu module", stateOK, "haswell"},
		"free memory":          {func(*checkup) {}, "memory", stateOK, "5.7 GiB may be held"},
		"memory unreadable":    {func(c *checkup) { delete(c.host.Files.(fstest.MapFS), "proc/meminfo") }, "memory", stateWarning, "unknown"},
		"locks of 8 MiB":       {func(c *checkup) { c.locks = lockable(planner.MeasuredFact[int64](8<<20, 0, "small limit")) }, "memory locks", stateWarning, "8.0 MiB may be locked (small limit)"},
		"locks of 1 GiB":       {func(*checkup) {}, "memory locks", stateOK, "1.0 GiB"},
		"locks unreadable":     {func(c *checkup) { c.locks = lockable(planner.UnknownFact[int64]("no limits file", "")) }, "memory locks", stateWarning, "no limits file"},
		"results to be made":   {func(*checkup) {}, "results", stateOK, "made by the first run"},
		"results below a file": {func(c *checkup) { c.db = filepath.Join(text, "results.db") }, "results", stateMissing, "not a"},
		"results are not ours": {func(c *checkup) { c.db = text }, "results", stateMissing, text},
		"no such model":        {func(c *checkup) { c.model = text + ".gguf" }, "model", stateMissing, text + ".gguf"},
		"model is not GGUF":    {func(c *checkup) { c.model = text }, "model", stateMissing, text},
		"model":                {func(c *checkup) { c.model = smallModel(t) }, "model", stateOK, "2 layers of 4 experts, 2 used"},
		"direct reads":         {func(c *checkup) { c.model = smallModel(t) }, "direct reads", stateOK, "work"},
		"direct reads are not so": {func(c *checkup) {
			c.model = smallModel(t)
			c.directReads = func(string) error { return errors.New("refused") }
		}, "direct reads", stateWarning, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c := healthy(t)
			tc.damage(&c)
			var got finding
			for _, f := range c.findings(t.Context()) {
				if f.Name == tc.find {
					got = f
				} else if f.State == stateMissing {
					t.Errorf("%s is also missing: %s", f.Name, f.Detail)
				}
			}
			if got.State != tc.state || !strings.Contains(got.Detail, tc.says) {
				t.Errorf("found %+v, want state %s saying %q", got, tc.state, tc.says)
			}
			if (got.State == stateOK) != (got.Fix == "") {
				t.Errorf("%+v: a finding that is not ok says what to do, an ok one does not", got)
			}
		})
	}
}

// Looking must not make anything: the database's folder least of all.
func TestDoctorChangesNothing(t *testing.T) {
	c := healthy(t)
	c.findings(t.Context())
	if _, err := os.Stat(filepath.Dir(c.db)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the database was made: %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(filepath.Dir(c.db)))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDoctorExitCode(t *testing.T) {
	c := healthy(t)
	if err := diagnose(t.Context(), io.Discard, c, false); report(context.Background(), err, io.Discard) != exitOK {
		t.Errorf("a healthy machine: %v", err)
	}
	c.libraries = func() (string, string, error) { return "", "", errors.New("gone") }
	var out, errs strings.Builder
	err := diagnose(t.Context(), &out, c, true)
	if code := report(context.Background(), err, &errs); code != exitFailure {
		t.Errorf("exit %d without libraries, want %d", code, exitFailure)
	}
	var doc doctorDoc
	if err := json.Unmarshal([]byte(out.String()), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OK || !strings.Contains(errs.String(), "llama.cpp") {
		t.Errorf("ok %v, said %q", doc.OK, errs.String())
	}
}

// The program's own doctor, on this machine: libraries are beside the tests.
func TestDoctorHere(t *testing.T) {
	code, out, errs := runBmoe(t, "doctor", "-m", smallModel(t), "--db", filepath.Join(t.TempDir(), "r.db"), "--json")
	if code != exitOK {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	var doc doctorDoc
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range doc.Findings {
		names = append(names, f.Name)
	}
	want := []string{"llama.cpp", "cpu module", "memory", "memory locks", "results", "model", "direct reads"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
