package reports

import (
	"fmt"
	"math"
	"time"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

var day = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func testModel(n int) record.Model {
	return record.Model{ID: fmt.Sprintf("model%d", n), Name: fmt.Sprintf("synth_%d", n), Arch: "qwen3moe", Quant: "Q8_0", Bytes: 1800 * mib, Layers: 16, Experts: 64, ExpertsUsed: 8, RoutedBytes: 1600 * mib, DenseBytes: 200 * mib, TokenCycle: 200 * mib}
}

func testMachine() record.Machine {
	return record.Machine{ID: "machine1", CPU: "Example CPU", Cores: 2, Threads: 2, RAMBytes: 8 << 30, OS: "linux", Arch: "amd64"}
}

func testBuild() record.Build {
	return record.Build{ID: "build1", Commit: "0123456789abcdef", LlamaCPP: "v0.4.0", CPUModule: "haswell", Go: "go1.26"}
}

// testRun is a streamed run whose figures follow from its number.
func testRun(n, model int) record.StoredRun {
	at := day.Add(time.Duration(n) * 10 * time.Minute)
	cfg := config.Default()
	cfg.MoeStream, cfg.CacheMB, cfg.IOThreads = true, 200+50*n, 1+n%4
	measured := 0.1 / (1 + 0.1*float64(n))
	point := measured * (1 + 0.1*math.Sin(float64(n)))
	known := func(x, spread float64) planner.Estimate {
		return planner.Estimate{Known: true, Point: x, Lo: x * (1 - spread), Hi: x * (1 + spread), Basis: "test"}
	}
	r := record.Run{
		Schema: record.RunSchema, RunID: fmt.Sprintf("run%05d%d", n, model), StartedAt: at, FinishedAt: at.Add(time.Minute), State: record.StateDone,
		Machine: testMachine(), Build: testBuild(), Model: testModel(model), Config: cfg,
		Prediction: &record.Prediction{Prediction: planner.Prediction{
			DecodeSPerToken: known(point, 0.08), HitRate: known(0.3+0.02*float64(n), 0.1), BytesPerToken: known(float64(100-2*n)*mib, 0.1),
		}, MadeAt: at},
		Measured: record.Measured{DecodeSPerToken: measured, HitRate: 0.35 + 0.02*float64(n), BytesPerToken: float64(95-2*n) * mib, DecodeTokens: 128, PromptTokens: 16, LoadS: 1, PrefillTokensPerS: 40},
	}
	return record.StoredRun{Run: r, Attempt: 1}
}

// testSweep is an experiment of three arms whose verdicts cover a win, an
// undecided and a void.
func testSweep() (record.Experiment, []record.StoredRun, record.Verdict) {
	e := record.Experiment{
		ID: "exp12345678", Question: "How many lanes | and is <more> better?", Lever: "io-threads", Kind: "sweep", Metric: "decode t/s", Design: "random",
		Seed: 7, Pairs: 8, Margin: 0.02, Alpha: 0.05, Baseline: "1", Falsifier: "an interval that holds 0", RegisteredAt: day,
		Machine: testMachine(), Build: testBuild(), Model: testModel(1), CacheState: "cold",
		Arms: []record.Arm{{Name: "1", Value: "1"}, {Name: "4", Value: "4"}, {Name: "8", Value: "8"}},
	}
	var runs []record.StoredRun
	for i := range 24 {
		arm := e.Arms[i%3].Name
		slot := record.Slot{Index: i, Block: i / 3, Pos: i % 3, Arm: arm}
		e.Schedule = append(e.Schedule, slot)
		r := testRun(i, 1)
		r.ExperimentID, r.Slot = e.ID, slot
		r.Run.Prediction = nil
		r.Run.Measured.DecodeSPerToken = 0.1 / (1 + 0.06*float64(i%3) + 0.01*math.Sin(float64(3*i)))
		runs = append(runs, r)
	}
	deltas := []float64{0.11, 0.12, 0.13, 0.115, 0.125, 0.09, 0.1, 0.14}
	v := record.Verdict{
		ID: "v1", ExperimentID: e.ID, Method: "paired/1", Drift: &record.Trend{Estimate: 0.001, Lo: -0.002, Hi: 0.003, Level: 0.95},
		Comparisons: []record.Comparison{
			{Arm: "4", Baseline: "1", Pairs: 8, Effect: 0.123, Lo: 0.098, Hi: 0.149, Level: 0.961, P: 0.0078, PHolm: 0.0156, Verdict: "better", Reason: "the interval lies above the margin", Deltas: deltas, Positive: 8,
				Sentence: "4 decodes 12.3 % faster than 1 (96.1 % CI 9.8 to 14.9 %, 8 pairs)"},
			{Arm: "8", Baseline: "1", Pairs: 8, Effect: 0.01, Lo: -0.03, Hi: 0.05, Level: 0.961, P: 0.31, PHolm: 0.31, Verdict: "undecided", Reason: "the interval holds 0 and is wider than the margin", Deltas: []float64{0.02, -0.02, 0.05, -0.01, 0.03, 0, 0.01, -0.03}, Positive: 4, Negative: 3},
		},
		Warnings: []string{"major faults rose in 1 run"},
		Predictions: []record.Comparison{
			{Arm: "4", Baseline: "prediction", Pairs: 8, Effect: 0.02, Lo: -0.01, Hi: 0.04, Level: 0.961, Verdict: "confirmed", Reason: "the interval lies in the registered band"},
		},
	}
	return e, runs, v
}

func testData() Data {
	e, runs, v := testSweep()
	d := Data{Experiments: []record.Experiment{e}, Verdicts: []record.Verdict{v}, Runs: runs}
	for n := range 6 {
		d.Runs = append(d.Runs, testRun(100+n, 1), testRun(n, 2))
	}
	d.Runs[25].Run.State, d.Runs[25].Run.Signal, d.Runs[25].Void = record.StateKilled, "killed", []string{"out of memory"}
	return d
}
