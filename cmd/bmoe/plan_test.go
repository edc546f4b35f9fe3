package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

// planFixture writes a small model to plan for.
func planFixture(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	var out bytes.Buffer
	args := strings.Fields("synth -o " + path + " --arch qwen3moe --layers 2 --experts 8 --experts-used 2 --embd 64 --ff 64 --type q8_0 --seed 1")
	if code := Run(context.Background(), args, nil, &out, &out); code != exitOK {
		t.Fatalf("bmoe synth: exit %d: %s", code, out.String())
	}
	return path
}

func planJSON(t *testing.T, args ...string) planDocument {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(context.Background(), append([]string{"plan", "--json"}, args...), nil, &out, &errs); code != exitOK {
		t.Fatalf("bmoe plan %v: exit %d: %s", args, code, errs.String())
	}
	var doc planDocument
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestPlanDocument(t *testing.T) {
	model := planFixture(t)
	doc := planJSON(t, "-m", model, "--no-probe-io", "--moe-stream", "--cache-policy", "lru")
	if doc.Schema != planSchema || len(doc.Decisions) == 0 || len(doc.Ledger) == 0 {
		t.Errorf("schema %q, %d decisions, %d ledger rows", doc.Schema, len(doc.Decisions), len(doc.Ledger))
	}
	pinned := map[string]string{}
	for _, d := range doc.Decisions {
		if d.Provenance == planner.Operator {
			pinned[d.Knob] = d.Value
		}
	}
	if pinned["cache-policy"] != "lru" || pinned["moe-stream"] != "true" {
		t.Errorf("operator's knobs %v", pinned)
	}
}

func TestPlanTakesTheEnvironmentAsTheCaller(t *testing.T) {
	model := planFixture(t)
	t.Setenv("BMOE_IO_THREADS", "3")
	doc := planJSON(t, "-m", model, "--no-probe-io", "--moe-stream")
	if doc.Config.IOThreads != 3 {
		t.Errorf("io-threads %d, want the environment's 3", doc.Config.IOThreads)
	}
}

func TestPlanReproduces(t *testing.T) {
	model := planFixture(t)
	doc := planJSON(t, "-m", model, "--no-probe-io", "--moe-stream", "-ub", "64", "--no-odirect")
	cmd := &cobra.Command{Use: "run", Run: func(*cobra.Command, []string) {}}
	k := bindKnobs(cmd)
	cmd.SetArgs(expandDashes(doc.Reproduce))
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	got, _, err := k.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(doc.Config, got); diff != "" {
		t.Errorf("%v gives another configuration:\n%s", doc.Reproduce, diff)
	}
}

func TestPlanBadInput(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		code int
		say  string
	}{
		{"no model", []string{"plan"}, exitUsage, "-m FILE"},
		{"no such file", []string{"plan", "-m", "nowhere.gguf"}, exitUsage, "nowhere.gguf"},
		{"knob out of range", []string{"plan", "-m", "x", "--io-threads", "0"}, exitUsage, "--io-threads"},
		{"stray argument", []string{"plan", "-m", "x", "y"}, exitUsage, "no arguments"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := Run(context.Background(), tc.args, nil, &out, &errs)
			if code != tc.code || !strings.Contains(errs.String(), tc.say) {
				t.Errorf("exit %d, %q; want %d and %q", code, errs.String(), tc.code, tc.say)
			}
		})
	}
}

func TestNoPlanFitsIsExit3(t *testing.T) {
	p := planner.Plan{Declined: true, Config: config.Default(), Decisions: []planner.Decision{{Topic: "declined", Reason: "no room"}}}
	var errs bytes.Buffer
	if code := report(context.Background(), noPlanFits(&p), &errs); code != exitNoPlan || !strings.Contains(errs.String(), "no room") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
