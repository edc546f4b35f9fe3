package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/model"
)

func runCLI(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

var smallSynth = []string{"--layers", "2", "--experts", "4", "--experts-used", "2", "--embd", "64", "--ff", "32", "--vocab", "512"}

func TestSynthWritesWhatItWasTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	code, stdout, stderr := runCLI(t, append([]string{"synth", "-o", path, "--arch", "olmoe", "--type", "q8_0", "--seed", "7", "--skew", "1", "--json"}, smallSynth...)...)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var doc struct {
		Schema      string
		Files       []string
		Bytes       int64
		RoutedBytes int64 `json:"routed_bytes"`
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "bmoe.synth/1" || len(doc.Files) != 1 || doc.Files[0] != path || doc.Bytes != m.Sizes[0] || doc.RoutedBytes != m.RoutedBytes() {
		t.Errorf("document %+v, model of %v bytes, %d routed", doc, m.Sizes, m.RoutedBytes())
	}
	if m.Arch != "olmoe" || m.Layers != 2 || m.Experts != 4 || m.ExpertsUsed != 2 || m.Embedding != 64 || m.ExpertTensors[0].Quant != "Q8_0" {
		t.Errorf("got %+v", m)
	}
	if stderr != "" {
		t.Errorf("with --json and no terminal nothing else is said, but: %s", stderr)
	}
}

func TestSynthRefusals(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken.gguf")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "add -o FILE"},
		{"-o m.gguf extra", exitUsage, "no arguments"},
		{"-o m.gguf --arch gpt2", exitUsage, "--arch gpt2"},
		{"-o m.gguf --layers 0", exitUsage, "--layers 0"},
		{"-o m.gguf --noise 0.1", exitUsage, "--noise: only with --from-llama2c"},
		{"-o m.gguf --from-llama2c w.bin", exitUsage, "tokenizer"},
		{"-o m.gguf --from-llama2c w.bin t.bin --skew 1", exitUsage, "--skew: comes from the weights"},
		{"-o " + dir + "/m.gguf --from-llama2c " + taken + " t.bin", exitFailure, taken + ": not a llama2.c checkpoint"},
		{"-o " + taken, exitFailure, "--force"},
		{"-o " + dir, exitFailure, "is a directory"},
		{"-o " + filepath.Join(dir, "none", "m.gguf"), exitFailure, "no such file or directory"},
	} {
		code, _, stderr := runCLI(t, append([]string{"synth"}, strings.Fields(tc.args)...)...)
		if code != tc.code || !strings.Contains(stderr, tc.want) {
			t.Errorf("synth %s: exit code %d, want %d; %q, want %q", tc.args, code, tc.code, stderr, tc.want)
		}
	}
	if b, _ := os.ReadFile(taken); string(b) != "mine" {
		t.Error("a refused command changed the file")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("refused commands left %v", entries)
	}
}

func TestSynthInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	code := Run(ctx, []string{"synth", "-o", filepath.Join(dir, "m.gguf")}, nil, &out, &errs)
	if entries, _ := os.ReadDir(dir); code != exitInterrupted || len(entries) != 0 {
		t.Errorf("exit code %d, left %v: %s", code, entries, errs.String())
	}
}
