package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine"
	"github.com/bmoe/bmoe/engine/rpctest"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/probes/backends"
)

// From the facts of a real device to a prompt computed on it: the device is the
// host's equal, so the margin it must win by is taken away.
func TestPlanArmsARealDeviceAndARunUsesIt(t *testing.T) {
	cfg := config.Default()
	cfg.Model, cfg.RPC, cfg.Threads, cfg.CtxSize, cfg.LogitsHash = planFixture(t), rpctest.Start(t).At, 1, 1024, true
	pins := planner.Pins{"rpc": cfg.RPC, "moe-stream": "true", "threads": "1", "ctx-size": "1024", "repack": "off"}
	cfg.MoeStream, cfg.Repack = true, "off"
	profile, err := probes.Probe(t.Context(), cfg, probes.Options{NoIO: true, Engine: backends.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	pol := planner.DefaultPolicy()
	pol.MinBackendWin = 0.01
	plan, err := planner.Make(profile, cfg, pins, pol)
	if err != nil {
		t.Fatal(err)
	}
	c := plan.Config
	if c.PrefillDevice != "RPC0" || !c.PrefillBestEffort {
		t.Fatalf("prefill device %q, best effort %v: %+v", c.PrefillDevice, c.PrefillBestEffort, plan.Decisions)
	}
	hash := func(c config.Config) (string, int64, string) {
		s, err := engine.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Generate(t.Context(), engine.Request{Text: strings.Repeat("the small red fox ran ", 20), Predict: 4})
		if err != nil {
			t.Fatal(err)
		}
		return r.LogitsHash, s.Counters().BytesToDevice, strings.Join(s.Notes(), "\n")
	}
	got, sent, notes := hash(c)
	c.PrefillDevice = "none"
	want, none, _ := hash(c)
	if got != want || sent == 0 || none != 0 || !strings.Contains(notes, "agrees with the host on 31 of 31") {
		t.Errorf("hash %s, the host's %s; %d and %d bytes to the device; notes %s", got, want, sent, none, notes)
	}
}

func TestDeviceErrorsSayWhatToType(t *testing.T) {
	model := planFixture(t)
	run := func(more ...string) []string {
		return append([]string{"run", "-m", model, "-t", "1", "-c", "256", "-p", "a", "-n", "1", "--no-record", "--no-repack", "--moe-stream", "--cache-mb", "8"}, more...)
	}
	tests := []struct {
		args []string
		code int
		want string
	}{
		{run("--prefill-device", "RPC0"), exitFailure, "name an RPC server with --rpc"},
		{run("--prefill-device", "RPC0", "--rpc", "127.0.0.1:1"), exitFailure, "start ggml-rpc-server there"},
		{run("--rpc", "127.0.0.1"), exitUsage, "want host:port"},
		{run("--rpc", "127.0.0.1:1,localhost:1"), exitUsage, "each server once"},
		{run("--device-split", "RPC0=1"), exitFailure, "--gpu-layers"},
		{[]string{"probe", "-m", model, "--device", "RPC0"}, exitFailure, "name its server with --rpc"},
		{[]string{"probe", "-m", model, "--device", "RPC0", "--rpc", "127.0.0.1:1"}, exitFailure, "start ggml-rpc-server there"},
		{[]string{"plan", "-m", model, "--probe-timeout", "0"}, exitUsage, "--probe-timeout"},
	}
	for _, tt := range tests {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), tt.args, nil, &out, &errs); code != tt.code || !strings.Contains(errs.String(), tt.want) {
			t.Errorf("%v: exit %d, %q; want %d with %q", tt.args, code, errs.String(), tt.code, tt.want)
		}
	}
}
