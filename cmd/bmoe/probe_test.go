package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/planner"
)

// seedFacts is the table of facts a plan is made of: what each row asks, and
// the names under which `bmoe probe` answers it.
var seedFacts = map[string][]string{
	"residency budget":                            {"memory.holdable", "memory.available", "memory.limit", "memory.limit-headroom"},
	"headroom":                                    {"memory.headroom-estimate", "memory.headroom-measured"},
	"core classes":                                {"cores.classes", "cores.physical", "cores.numa"},
	"host memory bandwidth":                       {"host.narrow", "host.narrow-repack", "host.copy"},
	"anonymous memory under pressure":             {"memory.reclaim", "memory.swap-free"},
	"reclaim-exempt allocation":                   {"locks.store"},
	"reclaim-exempt in total, net":                {"locks.store-bytes", "locks.upper-bound"},
	"lockable in place":                           {"locks.in-place"},
	"the matmul many tokens wide":                 {"host.wide", "host.wide-repack"},
	"largest layer's experts and other weights":   {"model.layer-experts", "model.layer-other"},
	"compute buffers, and what width adds":        {"buffers.context", "buffers.compute"},
	"uncached reads work":                         {"storage.odirect", "storage.align"},
	"a live mapping serialises":                   {"storage.mapping-serialises", "storage.rate-mapped", "storage.rate-unmapped"},
	"read rate by size and lanes":                 {"storage.rate", "storage.refault", "storage.buffered", "storage.drift"},
	"expert slice size":                           {"model.slices"},
	"token cycle":                                 {"model.token-cycle"},
	"dense split by access shape":                 {"model.dense-read", "model.dense-row", "model.dense-idle"},
	"whether a device executes over host memory":  {"backends.looked", "backends.loaded"},
	"thermal and frequency":                       {"cores.temperature", "cores.frequency", "cores.governor"},
	"tied head, quantisation, memory granularity": {"model.tied-head", "model.quants", "memory.page-size", "memory.overcommit"},
}

type probeDocument struct {
	Schema string             `json:"schema"`
	Facts  []planner.FactLine `json:"facts"`
}

func probeJSON(t *testing.T, args ...string) map[string]planner.FactLine {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), append([]string{"probe", "--json"}, args...), nil, &out, &errs); code != exitOK {
		t.Fatalf("bmoe probe %v: exit %d: %s", args, code, errs.String())
	}
	var doc probeDocument
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != probeSchema {
		t.Errorf("schema %q", doc.Schema)
	}
	facts := map[string]planner.FactLine{}
	for _, f := range doc.Facts {
		facts[f.Name] = f
	}
	return facts
}

func TestProbeAnswersEveryRowOfTheTable(t *testing.T) {
	facts := probeJSON(t, "-m", planFixture(t), "-c", "1024", "-t", "1")
	for row, names := range seedFacts {
		for _, name := range names {
			f, ok := facts[name]
			switch {
			case !ok:
				t.Errorf("%s: %s is not printed", row, name)
			case f.Reason == "":
				t.Errorf("%s: %s has no reason", row, name)
			case f.State == "unknown" && f.Owed == "" && name != "memory.limit-headroom":
				t.Errorf("%s: %s is unknown (%s) and owes nothing", row, name, f.Reason)
			}
		}
	}
	for _, name := range []string{"host.narrow", "host.wide", "buffers.context", "buffers.compute", "backends.looked"} {
		if facts[name].State == "unknown" {
			t.Errorf("%s is unknown in a build with the engine: %s", name, facts[name].Reason)
		}
	}
	// A file this small has no rate; saying one would be inventing it.
	if f := facts["storage.rate"]; f.State != "unknown" || !strings.Contains(f.Reason, "smaller than one sample") {
		t.Errorf("storage.rate = %+v of a file of some KiB", f)
	}
}

func TestProbeWithoutReadingTheDrive(t *testing.T) {
	model := planFixture(t)
	for _, flag := range []string{"--no-io", "--no-probe-io"} {
		if f := probeJSON(t, "-m", model, "-t", "1", flag)["storage.rate"]; f.State != "unknown" || !strings.Contains(f.Reason, "turned off") {
			t.Errorf("%s: storage.rate = %+v", flag, f)
		}
	}
}

func TestProbePrintsUnknownsWithWhatIsOwed(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"probe", "-m", planFixture(t), "--no-io", "-t", "1"}, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	known, rest, ok := strings.Cut(out.String(), "unknown, and what would settle it:")
	if !ok || !strings.Contains(known, "model.token-cycle") || !strings.Contains(known, "[derived]") || !strings.Contains(rest, "owed: ") ||
		!strings.Contains(rest, "storage.rate") || strings.Contains(known, "storage.rate ") {
		t.Errorf("printed:\n%s", out.String())
	}
}

func TestProbeBadInput(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage.gguf")
	if err := os.WriteFile(garbage, []byte("GGUF but not really"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"probe"}, exitUsage, "name one with -m FILE"},
		{[]string{"probe", "model.gguf"}, exitUsage, "name the model with -m"},
		{[]string{"probe", "-m", garbage}, exitUsage, garbage},
		{[]string{"probe", "-m", "/no/such.gguf", "--json"}, exitUsage, "/no/such.gguf"},
		{[]string{"probe", "-m", garbage, "--device", "CPU"}, exitFailure, garbage},
		{[]string{"probe", "--hold", "everything"}, exitFailure, "--hold"},
	}
	for _, tt := range tests {
		var out, errs bytes.Buffer
		code := Run(t.Context(), tt.args, strings.NewReader(""), &out, &errs)
		if code != tt.code || !strings.Contains(errs.String(), tt.want) || out.Len() > 0 {
			t.Errorf("%v: exit %d, stderr %q, stdout %q; want %d with %q", tt.args, code, errs.String(), out.String(), tt.code, tt.want)
		}
	}
}

func TestProbeOfOneDevice(t *testing.T) {
	model := planFixture(t)
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"probe", "-m", model, "--device", "CPU", "-t", "1"}, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	if strings.Count(out.String(), "\n") != 1 || !json.Valid(out.Bytes()) {
		t.Errorf("printed %q, want one line of JSON", out.String())
	}
	out.Reset()
	if code := Run(t.Context(), []string{"probe", "-m", model, "--device", "Moon0"}, nil, &out, &errs); code != exitFailure || !strings.Contains(errs.String(), `"Moon0"`) {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
