package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
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

// A run over a fitted placement says what was projected and what it reserved,
// on the terminal and in the ledger. A server of this machine's is no memory of
// its own, so the facts are told otherwise.
func TestARunSetsTheProjectionAgainstWhatItReserved(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Model = filepath.Join(dir, "m.gguf")
	synth := strings.Fields("synth --arch qwen3moe --layers 6 --experts 32 --experts-used 2 --embd 256 --ff 512 --type q8_0 --seed 1 -o " + cfg.Model)
	var out, errs bytes.Buffer
	if code := Run(t.Context(), synth, nil, &out, &errs); code != exitOK {
		t.Fatal(errs.String())
	}
	cfg.RPC, cfg.RPCMB, cfg.Threads, cfg.CtxSize, cfg.Predict, cfg.Repack = rpctest.Start(t).At, 64, 1, 1024, 4, "off"
	pins := planner.Pins{"rpc": cfg.RPC, "rpc-mb": "64", "threads": "1", "ctx-size": "1024", "n-predict": "4", "repack": "off"}
	for _, stream := range []bool{true, false} {
		if cfg.MoeStream = stream; stream {
			pins["moe-stream"] = "true"
		} else {
			delete(pins, "moe-stream")
		}
		profile, err := probes.Probe(t.Context(), cfg, probes.Options{NoIO: true, Engine: backends.New(nil)})
		if err != nil {
			t.Fatal(err)
		}
		profile.Devices[0].HostMemory = planner.MeasuredFact(false, 0, "as if it were elsewhere")
		plan, err := planner.Make(profile, cfg, pins, planner.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		if plan.Placement == nil || plan.Config.MoeStream != stream {
			t.Fatalf("placement %+v, stream %v: %+v", plan.Placement, plan.Config.MoeStream, profile.Placement)
		}
		out.Reset()
		errs.Reset()
		db := filepath.Join(dir, fmt.Sprintf("%v.db", stream))
		r := &runner{app: &app{stdout: &out, stderr: &errs, dbPath: db}, flags: &runFlags{}, cfg: plan.Config, pins: pins, prompt: "the small red fox", plan: &plan}
		doc := newDocument(t.Context(), r)
		if err := errors.Join(doc.identify(cfg.Model), r.openLedger(t.Context()), r.once(t.Context(), doc)); err != nil {
			t.Fatal(err)
		}
		r.ledger.close()
		if len(doc.run.Reserved) != 3 {
			t.Fatalf("%d comparisons: %v", len(doc.run.Reserved), doc.run.Reserved)
		}
		for _, x := range doc.run.Reserved {
			t.Log(x)
			if !x.Within || !strings.Contains(errs.String(), "reserved  "+x.String()) {
				t.Errorf("stream %v: %+v in %s", stream, x, errs.String())
			}
		}
		var page bytes.Buffer
		if code := Run(t.Context(), []string{"show", doc.run.RunID, "--db", db, "--width", "200"}, nil, &page, &errs); code != exitOK || !strings.Contains(page.String(), doc.run.Reserved[0].String()) {
			t.Errorf("show: exit %d\n%s", code, page.String())
		}
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

// What happens to a device in the middle of a prompt is said, on the terminal
// and in the document: the host took over, or why the run ended.
func TestADeviceThatIsLostInAPromptIsSaid(t *testing.T) {
	model, real := planFixture(t), rpctest.Start(t).At
	for _, effort := range []bool{true, false} {
		at := rpctest.Listen(t, func(c net.Conn) { // a server that goes after a megabyte
			s, err := net.Dial("tcp", real)
			if err != nil {
				return
			}
			defer s.Close()
			go func() { _, _ = io.Copy(c, s) }()
			_, _ = io.CopyN(s, c, 1<<20)
		})
		args := strings.Fields("run -t 1 -c 1024 -n 2 --no-record --no-repack --moe-stream --cache-mb 8 --prefill-device RPC0 --no-prefill-verify")
		args = append(args, "-m", model, "--rpc", at, "-p", strings.Repeat("the small red fox ran ", 40))
		code, want := exitFailure, "bmoe: device RPC0: the RPC server "+at+" was lost"
		if effort {
			args, code, want = append(args, "--prefill-best-effort"), exitOK, "the host computed a prompt in the device's place: device RPC0: the RPC server "+at+" was lost"
		}
		var out, errs bytes.Buffer
		if got := Run(t.Context(), args, nil, &out, &errs); got != code || !strings.Contains(errs.String(), want) {
			t.Errorf("best effort %v: exit %d, %s; want %d and %q", effort, got, errs.String(), code, want)
		}
	}
}
