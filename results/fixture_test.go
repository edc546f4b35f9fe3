package results

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func testMachine(n int) record.Machine {
	m := record.Machine{OS: "linux", Arch: "amd64", CPU: fmt.Sprintf("Test CPU %d", n), Cores: 2, Threads: 2, RAMBytes: 8 << 30, Storage: "disk", Label: fmt.Sprintf("alice-box-%d", n)}
	m.ID = m.ContentID()
	return m
}

func testBuild() record.Build {
	b := record.Build{Commit: "abc123", Go: "go1.26.8", LlamaCPP: "v0.4.0", CPUModule: "libggml-cpu-icelake.so"}
	b.ID = b.ContentID()
	return b
}

func testModel(n int) record.Model {
	return record.Model{
		ID: fmt.Sprintf("%064x", 0xfeed+n), Name: "tiny-moe", Arch: "qwen3moe", Quant: "q8_0",
		Bytes: 1 << 30, Layers: 16, Experts: 64, ExpertsUsed: 8, RoutedBytes: 900 << 20, DenseBytes: 124 << 20, TokenCycle: 120 << 20,
	}
}

func testPlan(io int) planner.Plan {
	c := testConfig(io)
	return planner.Plan{
		Config: c, Regime: "experts-stream",
		Decisions: []planner.Decision{
			{Knob: "model", Value: "/home/alice/models/tiny.gguf", Provenance: planner.Operator, Brief: "given", Topic: "model"},
			{Knob: "io-threads", Value: fmt.Sprint(io), Provenance: planner.Measured, Reason: "rates by lanes", Brief: "the drive peaks there", Topic: "lanes"},
		},
		Ledger: []planner.LedgerRow{{Row: "expert cache", Bytes: 256 << 20, Ceiling: "holdable"}},
		Prediction: planner.Prediction{
			DecodeSPerToken: planner.Estimate{Known: true, Point: 0.05, Lo: 0.04, Hi: 0.07, Basis: "roofline"},
			HitRate:         planner.Estimate{Known: true, Point: 0.6, Lo: 0.5, Hi: 0.7},
			Dominant:        "storage",
		},
		Reproduce: []string{"-m", "/home/alice/models/tiny.gguf", "--io-threads", fmt.Sprint(io)},
	}
}

func testConfig(io int) config.Config {
	c := config.Default()
	c.Model, c.Prompt, c.IOThreads, c.MoeStream, c.CacheMB = "/home/alice/models/tiny.gguf", "a secret prompt", io, true, 256
	return c
}

// testRun is run number n of a machine: everything in it follows from the two.
func testRun(machine, n, samples int) record.Run {
	rng := rand.New(rand.NewPCG(uint64(machine), uint64(n)))
	start := epoch.Add(time.Duration(machine)*time.Hour + time.Duration(n)*time.Minute)
	plan := testPlan(1 << (n % 4))
	pred := record.NewPrediction(plan.Prediction, start.Add(-time.Second))
	r := record.Run{
		Schema: record.RunSchema, StartedAt: start, FinishedAt: start.Add(30 * time.Second), State: record.StateDone,
		Machine: testMachine(machine), Build: testBuild(), Model: testModel(0),
		EnvBefore: record.Environment{At: start, Kernel: "6.1", MemAvailable: 4 << 30, Load1: 0.25},
		EnvAfter:  record.Environment{At: start.Add(30 * time.Second), Kernel: "6.1", MemAvailable: 3 << 30, Load1: 1.5},
		Config:    plan.Config, Pins: planner.Pins{"model": plan.Config.Model, "cache-mb": "256"}, Plan: &plan, Prediction: &pred,
		Text: "Once upon a time", TokenHash: fmt.Sprintf("%016x", rng.Uint64()), Warnings: []string{"slow: /home/alice/models/tiny.gguf is on a network"},
	}
	for i := range samples {
		r.Tokens = append(r.Tokens, rng.Int32N(151936))
		ns := int64(40e6 + rng.Float64()*20e6)
		r.TokenNS = append(r.TokenNS, ns)
		r.TokenWaitNS = append(r.TokenWaitNS, ns/int64(2+i%3))
	}
	r.Measured = record.Measured{
		DecodeSPerToken: 0.05 + rng.Float64()/100, PrefillTokensPerS: 180.5, LoadS: 1.25, HitRate: 0.61, BytesPerToken: 31 << 20,
		RSSBytes: 1<<62 + 1, DecodeTokens: int64(samples), PromptTokens: 12,
	}
	r.Stats.Lookups, r.Stats.Hits, r.Stats.Misses, r.Stats.BytesRead = 1000, 610, 390, 1<<53+1
	return r
}

func testExperiment(machine, n int) record.Experiment {
	e := record.Experiment{
		Question: "how many lanes", Lever: "io-threads", Kind: "sweep", Metric: "decode_s_per_token", Design: "random",
		Seed: int64(n), Pairs: 2, Margin: 0.02, Alpha: 0.05, Baseline: "1", Falsifier: "no arm beats 1 lane", CacheState: "warm",
		RegisteredAt: epoch.Add(time.Duration(machine)*time.Hour + time.Duration(n)*time.Minute),
		Machine:      testMachine(machine), Build: testBuild(), Model: testModel(0),
		Arms: []record.Arm{{Name: "1", Value: "1", Config: testConfig(1)}, {Name: "4", Value: "4", Config: testConfig(4)}},
	}
	for b := range 2 {
		e.Schedule = append(e.Schedule, record.Slot{Index: 2 * b, Block: b, Pos: 0, Arm: "1"}, record.Slot{Index: 2*b + 1, Block: b, Pos: 1, Arm: "4"})
	}
	e.ID = e.ContentID()
	return e
}

func openTest(t testing.TB, name string) *Store {
	t.Helper()
	s, err := Open(context.Background(), filepath.Join(t.TempDir(), name), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// fill stores an experiment with its runs, a lone run, a verdict and a void.
func fill(t testing.TB, s *Store, machine int) (experiment string, runs []string) {
	t.Helper()
	ctx := context.Background()
	e := testExperiment(machine, 0)
	must(t, second(s.SaveExperiment(ctx, e)))
	for i, slot := range e.Schedule {
		id, err := s.SaveRun(ctx, testRun(machine, i, 20), e.ID, slot, 1)
		must(t, err)
		runs = append(runs, id)
	}
	id, err := s.SaveRun(ctx, testRun(machine, 100, 5), "", record.Slot{}, 0)
	must(t, err)
	runs = append(runs, id)
	must(t, second(s.SaveVerdict(ctx, record.Verdict{ExperimentID: e.ID, Method: "paired/1", Comparisons: []record.Comparison{{Arm: "4", Baseline: "1", Pairs: 2, Effect: 0.1, Verdict: "undecided"}}})))
	return e.ID, runs
}

func second[T any](_ T, err error) error { return err }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
