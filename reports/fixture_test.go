package reports

import (
	"fmt"
	"math"
	"time"

	"github.com/bmoe/bmoe/engine/counters"
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
	cfg.MoeStream, cfg.CacheMB, cfg.IOThreads = true, 200+50*(n%30), 1+n%4
	measured := 0.1 / (1 + 0.1*float64(n))
	point := measured * (1 + 0.1*math.Sin(float64(n)))
	known := func(x, spread float64) planner.Estimate {
		return planner.Estimate{Known: true, Point: x, Lo: x * (1 - spread), Hi: x * (1 + spread), Basis: "test"}
	}
	r := record.Run{
		Schema: record.RunSchema, RunID: fmt.Sprintf("run%05d%d", n, model), StartedAt: at, FinishedAt: at.Add(time.Minute), State: record.StateDone,
		Machine: testMachine(), Build: testBuild(), Model: testModel(model), Config: cfg,
		Prediction: &record.Prediction{Prediction: planner.Prediction{
			DecodeSPerToken: known(point, 0.08), HitRate: known(0.3+0.02*float64(n%30), 0.1), BytesPerToken: known(float64(100-2*(n%30))*mib, 0.1),
		}, MadeAt: at},
		Measured: record.Measured{DecodeSPerToken: measured, HitRate: 0.35 + 0.02*float64(n%30), BytesPerToken: float64(95-2*(n%30)) * mib, DecodeTokens: 128, PromptTokens: 16, LoadS: 1, PrefillTokensPerS: 40},
	}
	r.Stats = counters.Counters{CacheBudgetBytes: int64(cfg.CacheMB) * mib, DecodeLookups: 10000, DecodeHits: int64(10000 * r.Measured.HitRate)}
	for i := range 40 {
		ns := int64(measured * 1e9 * (1 + 0.1*math.Sin(float64(i))))
		r.TokenNS = append(r.TokenNS, ns)
		r.TokenWaitNS = append(r.TokenWaitNS, ns*int64(3+i%3)/10)
		r.TokenManageNS = append(r.TokenManageNS, ns/50)
	}
	r.Plan = testPlan()
	return record.StoredRun{Run: r, Attempt: 1}
}

func testPlan() *planner.Plan {
	return &planner.Plan{
		Decisions: []planner.Decision{
			{Knob: "io-threads", Value: "4", Provenance: planner.Measured, Brief: "Four lanes read 1900 MB/s.", Reason: "the curve's knee", Topic: "io"},
			{Knob: "cache-mb", Value: "400", Provenance: planner.Operator, Brief: "You said so."},
		},
		Ledger: []planner.LedgerRow{
			{Row: "context", Bytes: 40 * mib, Ceiling: planner.CeilingHoldable},
			{Row: "compute buffers", Bytes: 30 * mib, Ceiling: planner.CeilingHoldable, Note: "512 tokens wide"},
			{Row: "other weights", Bytes: 200 * mib, Ceiling: planner.CeilingHoldable, Note: "anon"},
			{Row: "expert cache", Bytes: 400 * mib, Ceiling: planner.CeilingHoldable},
			{Row: "free", Bytes: 30 * mib, Ceiling: planner.CeilingHoldable},
			{Row: "may be held", Bytes: 700 * mib, Ceiling: planner.CeilingLimit, Note: planner.CeilingHoldable},
			{Row: "other weights", Bytes: 200 * mib, Ceiling: planner.CeilingLockable},
			{Row: "free", Bytes: 56 * mib, Ceiling: planner.CeilingLockable},
			{Row: "may be locked", Bytes: 256 * mib, Ceiling: planner.CeilingLimit, Note: planner.CeilingLockable},
		},
	}
}

func testProfile() record.Profile {
	var curve []planner.RatePoint
	for _, lanes := range []int{1, 2, 4} {
		for _, kib := range []int64{4, 16, 64, 256, 1024} {
			curve = append(curve, planner.RatePoint{Size: kib << 10, Lanes: lanes, BytesPerS: 1.9e9 * float64(kib*int64(lanes)) / float64(kib*int64(lanes)+100), Spread: 0.03})
		}
	}
	var p planner.Profile
	p.Storage.Curve = planner.MeasuredFact(curve, 0.03, "read from the file")
	return record.Profile{ID: "profile1", MachineID: "machine1", At: day, Facts: p.Facts()}
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
			{
				Arm: "4", Baseline: "1", Pairs: 8, Effect: 0.123, Lo: 0.098, Hi: 0.149, Level: 0.961, P: 0.0078, PHolm: 0.0156, Verdict: "better", Reason: "the interval lies above the margin", Deltas: deltas, Positive: 8,
				Sentence: "4 decodes 12.3 % faster than 1 (96.1 % CI 9.8 to 14.9 %, 8 pairs)",
			},
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
	d.Profiles = []record.Profile{testProfile()}
	d.Histograms = []record.Histogram{{ID: "h1", ModelID: "model2", Policy: "a2d", Phase: "decode", Lookups: 100, Cold: 20, Bins: []record.HistogramBin{{Bytes: 200 * mib, Count: 30}, {Bytes: 500 * mib, Count: 30}, {Bytes: 900 * mib, Count: 20}}}}
	void := record.Experiment{
		ID: "voidvoid99", Question: "Is it void?", Lever: "overlap", Kind: "sweep", Metric: "decode t/s", Design: "abba", Pairs: 6, Margin: 0.02, Alpha: 0.05, Baseline: "off", RegisteredAt: day.AddDate(0, 0, 1),
		Machine: testMachine(), Build: testBuild(), Model: testModel(2), Arms: []record.Arm{{Name: "off", Value: "false"}, {Name: "on", Value: "true"}}, Schedule: make([]record.Slot, 12),
	}
	d.Experiments = append(d.Experiments, void)
	d.Events = []record.Event{{ID: "e1", Kind: record.EventVoid, Subject: void.ID, Why: "another program used the drive", At: day}}
	for n := range 6 {
		d.Runs = append(d.Runs, testRun(100+n, 1), testRun(n, 2))
	}
	d.Runs[25].Run.State, d.Runs[25].Run.Signal, d.Runs[25].Void = record.StateKilled, "killed", []string{"out of memory"}
	return d
}
