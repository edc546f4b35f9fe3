package experiments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/results/record"
)

// dying is an engine that the caller interrupts or that vanishes with the whole
// process in the middle of a run.
type dying struct {
	*engine
	left      int // runs before it happens
	interrupt context.CancelFunc
}

var errVanished = errors.New("power cut")

func (d *dying) Run(ctx context.Context, job Job) record.Run {
	if d.left == 0 {
		if d.interrupt == nil {
			panic(errVanished)
		}
		d.interrupt()
		return record.Run{State: record.StateInterrupted, Config: job.Arm.Config}
	}
	d.left--
	return d.engine.Run(ctx, job)
}

// However often a sweep is interrupted or killed, it ends with every slot run
// in one whole attempt of its block, by the registered schedule, nothing lost
// and nothing stored twice.
func TestResumeAfterAnyDeath(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := lanesQuestion(t, 8, "1", "2", "4")
		q.Terms.Warmup = rapid.IntRange(0, 1).Draw(rt, "warmup")
		q.Seed = rapid.Int64Range(0, 1000).Draw(rt, "seed")
		e := register(t, q)
		store := newMemory()
		if err := store.SaveExperiment(t.Context(), e); err != nil {
			rt.Fatal(err)
		}
		machine := &engine{rng: rand.New(rand.NewPCG(1, 1)), noise: 0.01}
		for sitting := 0; ; sitting++ {
			if sitting > 200 {
				rt.Fatal("never done")
			}
			left := rapid.IntRange(0, 12).Draw(rt, "runs before the next death")
			done, before := sit(rt, store, e, &dying{engine: machine, left: left}, rapid.Bool().Draw(rt, "killed")), len(store.runs[e.ID])
			if done {
				break
			}
			if before != len(store.runs[e.ID]) {
				rt.Fatal("runs were lost")
			}
		}
		checkWhole(rt, e, store.runs[e.ID])
		if n := len(store.verdicts[e.ID]); n != 1 {
			rt.Fatalf("%d verdicts", n)
		}
		c := &Conductor{Store: store, Runner: machine, Sensor: quiet{}}
		if _, err := c.Resume(t.Context(), e); !errors.Is(err, ErrConcluded) {
			rt.Fatalf("a concluded experiment goes on: %v", err)
		}
	})
}

// sit is one sitting; it says whether the experiment came to its end.
func sit(t *rapid.T, store *memory, e record.Experiment, d *dying, killed bool) (done bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !killed {
		d.interrupt = cancel
	}
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, errVanished) {
				panic(p)
			}
		}
	}()
	c := &Conductor{Store: store, Runner: d, Sensor: quiet{}}
	_, err := c.Resume(ctx, e)
	if err != nil && !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	return err == nil
}

func checkWhole(t *rapid.T, e record.Experiment, runs []record.StoredRun) {
	seen := map[string]bool{}
	for _, r := range runs {
		if want := e.Schedule[r.Slot.Index]; want != r.Slot {
			t.Fatalf("run at %+v, the schedule says %+v", r.Slot, want)
		}
		key := fmt.Sprint(r.Slot.Index, "/", r.Attempt)
		if seen[key] {
			t.Fatalf("%s is stored twice", key)
		}
		seen[key] = true
	}
	if left := Remaining(&e, runs); left != 0 {
		t.Fatalf("%d runs left", left)
	}
	whole := map[int]int{}
	_, slots := wantedSlots(&e)
	for b, tried := range attempts(runs) {
		for _, bySlot := range tried {
			n := 0
			for _, r := range bySlot {
				if finished(r) {
					n++
				}
			}
			if n == len(slots[b]) {
				whole[b]++
			}
		}
		if whole[b] != 1 {
			t.Fatalf("block %d was run whole %d times", b, whole[b])
		}
	}
}

func TestRunsThatDieDoNotStopTheSweep(t *testing.T) {
	e := register(t, lanesQuestion(t, 8, "1", "4"))
	m := &engine{rng: rand.New(rand.NewPCG(1, 1)), noise: 0.001, effect: map[string]float64{"4": 0.2}}
	m.tamper = func(job Job, r *record.Run) {
		if job.Slot.Index == 5 {
			*r = record.Run{State: record.StateKilled, Error: "killed by SIGKILL", Config: job.Arm.Config}
		}
	}
	v := conduct(t, e, m)
	if c := v.Comparisons[0]; c.Verdict != "better" || c.Pairs != 7 {
		t.Errorf("%s with %d pairs", c.Verdict, c.Pairs)
	}
}

func TestARunThatDiedIsByTheBuildOfThoseThatEnded(t *testing.T) {
	q := lanesQuestion(t, 8, "1", "4")
	q.Build = record.Build{Commit: "c0ffee", Go: "go1.26", LlamaCPP: "v0.4.0"}
	e := register(t, q)
	said := q.Build // by a run that lived to look
	said.CPUModule = "zen4"
	said.ID = said.ContentID()
	store := newMemory()
	m := &engine{rng: rand.New(rand.NewPCG(1, 1))}
	m.tamper = func(job Job, r *record.Run) {
		r.Build = said
		if job.Slot.Index == 0 || job.Slot.Index == 5 {
			*r = record.Run{State: record.StateKilled, Error: "killed by SIGKILL", Config: job.Arm.Config}
		}
	}
	if _, err := (&Conductor{Store: store, Runner: m, Sensor: quiet{}}).Start(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	for _, r := range store.runs[e.ID] {
		want := "zen4"
		if r.Slot.Index == 0 { // nothing had ended yet
			want = ""
		}
		if got := r.Run.Build.CPUModule; got != want {
			t.Errorf("run %d: CPU module %q, want %q", r.Slot.Index, got, want)
		}
	}
}

func TestAStoreThatFailsEndsTheSweep(t *testing.T) {
	e := register(t, lanesQuestion(t, 8, "1", "4"))
	store := newMemory()
	store.fail = errors.New("disk full")
	c := &Conductor{Store: store, Runner: &engine{rng: rand.New(rand.NewPCG(1, 1))}, Sensor: quiet{}}
	if _, err := c.Start(t.Context(), e); err == nil || !strings.Contains(err.Error(), "disk full") || !strings.Contains(err.Error(), "store run 0") {
		t.Errorf("%v", err)
	}
}

func TestMaxTimeStopsBeforeABlock(t *testing.T) {
	q := lanesQuestion(t, 8, "1", "4")
	q.Terms.MaxTimeS = 50
	e := register(t, q)
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &engine{rng: rand.New(rand.NewPCG(1, 1)), noise: 0.001, effect: map[string]float64{"4": 0.2}}
	m.tamper = func(Job, *record.Run) { clock = clock.Add(5 * time.Second) }
	c := &Conductor{Store: newMemory(), Runner: m, Sensor: quiet{}, Now: func() time.Time { return clock }}
	v, err := c.Start(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	got := v.Comparisons[0]
	if got.Pairs != 5 || got.Verdict != "undecided" || !strings.Contains(got.Reason, "5 of 8 pairs were run") {
		t.Errorf("%d pairs: %s (%s)", got.Pairs, got.Verdict, got.Reason)
	}
	if !strings.Contains(strings.Join(v.Warnings, " "), "incomplete: 5 of 8") {
		t.Errorf("warnings %q", v.Warnings)
	}
}

// What is shown while a sweep runs says where it is and when it will end, and
// nothing of what was measured: the type has no room for it.
func TestProgress(t *testing.T) {
	q := lanesQuestion(t, 8, "1", "4")
	q.Terms.Warmup = 1
	e := register(t, q)
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &engine{rng: rand.New(rand.NewPCG(1, 1)), noise: 0.001}
	m.tamper = func(Job, *record.Run) { clock = clock.Add(10 * time.Second) }
	var seen []Progress
	c := &Conductor{Store: newMemory(), Runner: m, Sensor: quiet{}, Now: func() time.Time { return clock }, Progress: func(p Progress) { seen = append(seen, p) }}
	if _, err := c.Start(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 3*18 {
		t.Fatalf("%d steps", len(seen))
	}
	first, last := seen[1], seen[len(seen)-1]
	if first != (Progress{Phase: PhaseRunning, Arm: "1", Block: 0, Blocks: 8, Done: 0, Total: 18}) {
		t.Errorf("first %+v", first)
	}
	if last.Done != 18 || last.Block != 8 || last.ETA != 0 || last.Elapsed != 180*time.Second || last.State != record.StateDone {
		t.Errorf("last %+v", last)
	}
	if seen[5].ETA != 160*time.Second {
		t.Errorf("after two runs of 10 s, 16 to go: %v", seen[5].ETA)
	}
}

// restless is a machine that is busy for a while, then quiet.
type restless struct {
	quiet
	busy []float64
	n    int
}

func (r *restless) Busy(context.Context) (float64, bool) {
	r.n++
	if r.n <= len(r.busy) {
		return r.busy[r.n-1], true
	}
	return 0.01, true
}

func TestGate(t *testing.T) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	gate := func(s Sensor, wait time.Duration) *Gate {
		return &Gate{Sensor: s, Wait: wait, Now: func() time.Time { return clock }, Sleep: func(_ context.Context, d time.Duration) { clock = clock.Add(d) }}
	}
	s := &restless{busy: []float64{0.9, 0.8, 0.3}}
	env, warned := gate(s, time.Minute).Enter(t.Context(), "m")
	if len(warned) != 0 || env.CPUBusy != 0.01 || s.n != 4 {
		t.Errorf("%v after %d looks, busy %v", warned, s.n, env.CPUBusy)
	}
	s = &restless{busy: make([]float64, 1000)}
	for i := range s.busy {
		s.busy[i] = 0.9
	}
	before := clock
	_, warned = gate(s, 2*time.Second).Enter(t.Context(), "m")
	if len(warned) != 1 || !strings.HasPrefix(warned[0], gatePrefix) || clock.Sub(before) > 3*time.Second {
		t.Errorf("%v after %v", warned, clock.Sub(before))
	}
	env = record.Environment{MemAvailable: 1000, TempC: 40}
	for _, c := range []struct {
		env  record.Environment
		want int
	}{
		{record.Environment{MemAvailable: 950, TempC: 44}, 0},
		{record.Environment{MemAvailable: 800, TempC: 40}, 1},
		{record.Environment{MemAvailable: 1000, TempC: 46}, 1},
		{record.Environment{MemAvailable: 100, TempC: 60}, 2},
		{record.Environment{}, 1}, // memory unreadable now, though it was readable
	} {
		g := gate(quiet{c.env}, 0)
		g.SetReference(env)
		if _, warned := g.Enter(t.Context(), "m"); len(warned) != c.want {
			t.Errorf("%+v: %v", c.env, warned)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s = &restless{busy: []float64{0.9, 0.9}}
	if gate(s, time.Hour).Enter(ctx, "m"); s.n != 1 {
		t.Error("a cancelled wait goes on")
	}
}

func TestLock(t *testing.T) {
	path := t.TempDir() + "/lock"
	unlock, err := Lock(t.Context(), path, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(t.Context(), path, 0, nil); err == nil || !strings.Contains(err.Error(), "another experiment is running on this machine (process ") {
		t.Errorf("two hold the lock: %v", err)
	}
	unlock()
	unlock, err = Lock(t.Context(), path, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	time.AfterFunc(300*time.Millisecond, unlock)
	unlock, err = Lock(t.Context(), path, time.Minute, func(holder string) { told = holder })
	if err != nil || told == "" {
		t.Fatalf("%v, told %q", err, told)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path, time.Minute, nil); !errors.Is(err, ErrInterrupted) {
		t.Errorf("%v", err)
	}
}

func TestExpectedNoise(t *testing.T) {
	store := newMemory()
	q := lanesQuestion(t, 10, "1", "4")
	q.Kind, q.Lever, q.Arms = KindAA, "", AAArms(baseConfig())
	e := register(t, q)
	machine, model := e.Machine.ContentID(), e.Model.ContentID()
	if sd, source := ExpectedNoise(t.Context(), store, machine, model, MetricDecode); sd != assumedNoise || !strings.Contains(source, "--aa") {
		t.Errorf("%v, %s", sd, source)
	}
	m := &engine{rng: rand.New(rand.NewPCG(1, 1)), noise: 0.1}
	if _, err := (&Conductor{Store: store, Runner: m, Sensor: quiet{}}).Start(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	sd, source := ExpectedNoise(t.Context(), store, machine, model, MetricDecode)
	if sd < 0.07 || sd > 0.25 || !strings.Contains(source, Short(e.ID)) {
		t.Errorf("sd %v (%s), want about 0.14", sd, source)
	}
	if each, ok := ExpectedSeconds(t.Context(), store, machine, model); !ok || each != 3 {
		t.Errorf("%v s a run, %v", each, ok)
	}
}

func TestRecurrence(t *testing.T) {
	store := newMemory()
	var last record.Experiment
	var v record.Verdict
	for i, effect := range []float64{0.3, 0, 0.3} {
		q := lanesQuestion(t, 8, "1", "4")
		q.At = q.At.Add(time.Duration(i) * time.Hour)
		last = register(t, q)
		m := &engine{rng: rand.New(rand.NewPCG(uint64(i), 1)), noise: 0.002, effect: map[string]float64{"4": effect}}
		var err error
		if v, err = (&Conductor{Store: store, Runner: m, Sensor: quiet{}}).Start(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		if text, err := Recurrence(t.Context(), store, last, v.Comparisons[0]); i == 0 && (text != "" || err != nil) {
			t.Errorf("the first recurs: %q, %v", text, err)
		}
	}
	text, err := Recurrence(t.Context(), store, last, v.Comparisons[0])
	if err != nil || !strings.HasPrefix(text, "better in 2 of 3 experiments (before: ") || !strings.Contains(text, "equivalent") {
		t.Errorf("%q, %v", text, err)
	}
}
