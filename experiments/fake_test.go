package experiments

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// memory is a Store in memory.
type memory struct {
	mu          sync.Mutex
	experiments map[string]record.Experiment
	runs        map[string][]record.StoredRun
	verdicts    map[string][]record.Verdict
	fail        error // SaveRun's answer
}

func newMemory() *memory {
	return &memory{experiments: map[string]record.Experiment{}, runs: map[string][]record.StoredRun{}, verdicts: map[string][]record.Verdict{}}
}

func (m *memory) SaveExperiment(_ context.Context, e record.Experiment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.experiments[e.ID]; ok && old.RegisteredAt != e.RegisteredAt {
		return errors.New("conflict")
	}
	m.experiments[e.ID] = e
	return nil
}

func (m *memory) Experiment(_ context.Context, id string) (record.Experiment, error) {
	e, ok := m.experiments[id]
	if !ok {
		return e, fmt.Errorf("no experiment %s", id)
	}
	return e, nil
}

func (m *memory) Experiments(context.Context) ([]record.Experiment, error) {
	var all []record.Experiment
	for _, e := range m.experiments {
		all = append(all, e)
	}
	return all, nil
}

func (m *memory) SaveRun(_ context.Context, run record.Run, id string, slot record.Slot, attempt int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	for _, r := range m.runs[id] {
		if r.Slot.Index == slot.Index && r.Attempt == attempt {
			return fmt.Errorf("slot %d attempt %d is stored already", slot.Index, attempt)
		}
	}
	m.runs[id] = append(m.runs[id], record.StoredRun{Run: run, Slot: slot, Attempt: attempt})
	return nil
}

func (m *memory) Runs(_ context.Context, id string) ([]record.StoredRun, error) {
	return append([]record.StoredRun(nil), m.runs[id]...), nil
}

func (m *memory) SaveVerdict(_ context.Context, v record.Verdict) error {
	m.verdicts[v.ExperimentID] = append(m.verdicts[v.ExperimentID], v)
	return nil
}

func (m *memory) Verdicts(_ context.Context, id string) ([]record.Verdict, error) {
	return m.verdicts[id], nil
}

func (m *memory) Void(context.Context, string, string) error { return nil }

// engine is a machine with known effects: what each arm really does to the log
// rate, how runs scatter, and what changes over time.
type engine struct {
	rng    *rand.Rand
	effect map[string]float64 // log rate by arm
	noise  float64            // sd of one run's log rate
	drift  float64            // added per run
	ar     float64            // autocorrelation of the noise from run to run
	tamper func(Job, *record.Run)

	ran  int
	last float64
}

func (e *engine) Run(ctx context.Context, job Job) record.Run {
	innovation := e.noise * math.Sqrt(1-e.ar*e.ar) * e.rng.NormFloat64()
	if e.ran == 0 {
		innovation = e.noise * e.rng.NormFloat64()
	}
	e.last = e.ar*e.last + innovation
	rate := math.Log(20) + e.effect[job.Arm.Name] + e.last + e.drift*float64(e.ran)
	e.ran++
	r := doneRun(job.Arm.Config, math.Exp(rate))
	if e.tamper != nil {
		e.tamper(job, &r)
	}
	return r
}

// doneRun is a run that decoded at a rate (tokens per second), with counters
// that follow its configuration.
func doneRun(c config.Config, rate float64) record.Run {
	r := record.Run{Schema: record.RunSchema, State: record.StateDone, Config: c, TokenHash: "tokens"}
	r.StartedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r.FinishedAt = r.StartedAt.Add(3 * time.Second)
	r.Measured = record.Measured{DecodeSPerToken: 1 / rate, PrefillTokensPerS: 10 * rate, TTFTS: 5 / rate, LoadS: 1, DecodeTokens: 64, PromptTokens: 32}
	r.Stats.Lanes = int64(c.IOThreads)
	r.Stats.ExpertsRouted = 64 * 16 * 8
	return r
}

// quiet is a machine on which nothing else happens.
type quiet struct{ env record.Environment }

func (q quiet) Environment(context.Context, string) record.Environment { return q.env }
func (q quiet) Busy(context.Context) (float64, bool)                   { return 0, true }

func baseConfig() config.Config {
	c := config.Default()
	c.Model, c.MoeStream, c.IOThreads = "model.gguf", true, 1
	return c
}

// lanesQuestion asks about io-threads at the values given.
func lanesQuestion(t *testing.T, pairs int, values ...string) Question {
	t.Helper()
	p, err := Lever("io-threads")
	if err != nil {
		t.Fatal(err)
	}
	arms, err := SweepArms(p, values, baseConfig())
	if err != nil {
		t.Fatal(err)
	}
	return Question{
		Kind: KindSweep, Lever: "io-threads", Arms: arms, Metric: MetricDecode, Seed: 1, Pairs: pairs,
		Margin: 0.02, Alpha: 0.05, CacheState: CacheWarm, At: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		Terms: Terms{NoiseSD: 0.03, NoiseSource: "assumed"},
	}
}

func register(t *testing.T, q Question) record.Experiment {
	t.Helper()
	e, _, err := Register(q)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func conduct(t *testing.T, e record.Experiment, r Runner) record.Verdict {
	t.Helper()
	number := func(_ record.Run, _ string, slot record.Slot, attempt int) string {
		return fmt.Sprintf("%d/%d", slot.Index, attempt) // content ids would take most of a simulation's time
	}
	c := &Conductor{Store: newMemory(), Runner: r, Sensor: quiet{}, RunID: number}
	v, err := c.Start(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
