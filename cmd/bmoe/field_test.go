package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine"
	"github.com/bmoe/bmoe/results/record"
)

// Named, as the tests of docs/reliability.md are, for what users of other
// programs reported.

// With --require-fit a plan that does not fit is the end: nothing is loaded,
// nothing is stored, exit code 3.
func TestFieldRequireFitNeverRuns(t *testing.T) {
	dir := t.TempDir()
	model, db := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "r.db")
	if code, _, errs := runCLI(t, "synth", "-o", model, "--layers", "8", "--experts", "8", "--experts-used", "2", "--embd", "512", "--ff", "64", "--vocab", "512"); code != exitOK {
		t.Fatal(errs)
	}
	// A context of sixteen million tokens takes more than any test machine has.
	code, out, errs := runCLI(t, "run", "-m", model, "-c", "16777216", "-p", "once", "-n", "2", "--no-probe-io", "--require-fit", "--db", db)
	if code != exitNoPlan {
		t.Fatalf("exit %d, want %d: %s", code, exitNoPlan, errs)
	}
	if out != "" {
		t.Errorf("it printed text: %q", out)
	}
	if !strings.Contains(errs, "No plan fits") && !strings.Contains(errs, "no plan fits") {
		t.Errorf("it does not say why: %s", errs)
	}
	code, list, errs := runCLI(t, "db", "info", "--json", "--db", db)
	if code != exitOK {
		t.Fatal(errs)
	}
	var doc struct {
		Tables []struct {
			Name string
			Rows int
		}
	}
	if err := json.Unmarshal([]byte(list), &doc); err != nil {
		t.Fatal(err)
	}
	for _, table := range doc.Tables {
		if (table.Name == "run" || table.Name == "prediction") && table.Rows != 0 {
			t.Errorf("%d rows of %s after a run that never was", table.Rows, table.Name)
		}
	}
}

// A cache that served nothing is said to have served nothing.
func TestFieldZeroHitsWithACacheIsAWarning(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "m.gguf")
	if code, _, errs := runCLI(t, "synth", "-o", model, "--layers", "6", "--experts", "16", "--experts-used", "4", "--embd", "256", "--ff", "256", "--vocab", "512", "--type", "q8_0"); code != exitOK {
		t.Fatal(errs)
	}
	warnings := func(mb string) []string {
		code, out, errs := runCLI(t, "run", "-m", model, "--moe-stream", "--cache-policy", "lru", "--cache-mb", mb, "-t", "1", "-c", "256", "-p", "once", "-n", "12", "--ignore-eos", "--random-tokens", "1", "--no-record", "--json")
		if code != exitOK {
			t.Fatal(errs)
		}
		var run record.Run
		if err := json.Unmarshal([]byte(out), &run); err != nil {
			t.Fatal(err)
		}
		if zero := run.Measured.HitRate == 0; zero != (mb == "2") {
			t.Fatalf("cache %s MiB: hit rate %g", mb, run.Measured.HitRate)
		}
		return run.Warnings
	}
	said := func(list []string) bool { return strings.Contains(strings.Join(list, "\n"), "served no lookup") }
	if got := warnings("2"); !said(got) {
		t.Errorf("no warning in %q", got)
	}
	if got := warnings("64"); said(got) {
		t.Errorf("a warning where there were hits: %q", got)
	}
}

// At a token in ten seconds the line says so, and how long the rest will take.
func TestFieldLiveLineOfASlowMachine(t *testing.T) {
	var errs bytes.Buffer
	model := planFixture(t)
	cfg, _, err := readConfigJSON(t.Context(), strings.NewReader(`{"model":"`+model+`","ctx_size":256,"threads":1}`), "-")
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := &liveLine{out: &bytes.Buffer{}, err: &errs, s: s, errTTY: true}
	l.prompt(0, 700)
	if !strings.Contains(errs.String(), "prompt 0/700") {
		t.Errorf("at the beginning of a prompt: %q", errs.String())
	}
	l.last = time.Time{}
	l.token(engine.Progress{Token: 3, Of: 63, Elapsed: 30 * time.Second})
	if !strings.Contains(errs.String(), "3/63 tokens, 0.10 t/s") || !strings.Contains(errs.String(), "10m0s left") {
		t.Errorf("at the third token: %q", errs.String())
	}
}
