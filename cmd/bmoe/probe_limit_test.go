package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every probe under a limit: what they report fits it, and none of them, the
// one that holds memory included, runs into it.
func TestProbeUnderALimit(t *testing.T) {
	const limit = 320 << 20
	model := filepath.Join(t.TempDir(), "m.gguf")
	var out bytes.Buffer
	args := strings.Fields("synth -o " + model + " --arch qwen3moe --layers 4 --experts 32 --experts-used 4 --embd 512 --ff 512 --type q4_0 --seed 1")
	if code := Run(t.Context(), args, nil, &out, &out); code != exitOK {
		t.Fatalf("bmoe synth: exit %d: %s", code, out.String())
	}
	g := limitMemory(t, limit)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := g.command(exe, "probe", "-m", model, "--json", "--mem", "-t", "1")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	var doc probeDocument
	if err := json.Unmarshal(output(t, cmd), &doc); err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range doc.Facts {
		if n, ok := f.Value.(float64); ok {
			values[f.Name] = n
		}
		if f.Name == "memory.headroom-measured" && f.State == "unknown" {
			t.Errorf("headroom was not measured: %s", f.Reason)
		}
	}
	if values["memory.limit"] != limit {
		t.Errorf("limit = %g, want %d", values["memory.limit"], limit)
	}
	for _, name := range []string{"memory.holdable", "memory.limit-headroom", "memory.headroom-measured", "locks.in-place", "locks.upper-bound"} {
		if n := values[name]; n <= 0 || n > limit {
			t.Errorf("%s = %g under a limit of %d", name, n, limit)
		}
	}
	if n := values["memory.headroom-measured"]; n > limit-limit/20 {
		t.Errorf("held %g, past the limit of %d less its margin", n, limit)
	}
	if n := g.killed(t); n != "0" {
		t.Errorf("the kernel ended %s processes of the group", n)
	}
}

// killed is how many processes of the group were ended for lack of memory.
func (g *memoryGroup) killed(t *testing.T) string {
	t.Helper()
	for _, file := range []string{"memory.oom_control", "memory.events"} {
		raw, err := os.ReadFile(filepath.Join(g.dir, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if name, n, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
				return n
			}
		}
	}
	t.Fatal("the group does not count what it ended")
	return ""
}
