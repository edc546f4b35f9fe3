package experiments

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/results/record"
)

// steady makes runs whose arms differ by known factors with a little scatter,
// and lets the case tamper with each.
func steady(e record.Experiment, factor map[string]float64, tamper func(*record.StoredRun)) []record.StoredRun {
	rng := rand.New(rand.NewPCG(5, 6))
	var runs []record.StoredRun
	for _, slot := range e.Schedule {
		f := factor[slot.Arm]
		if f == 0 {
			f = 1
		}
		r := record.StoredRun{Run: doneRun(armNamed(&e, slot.Arm).Config, 20*f*math.Exp(0.003*rng.NormFloat64())), Slot: slot, Attempt: 1}
		if tamper != nil {
			tamper(&r)
		}
		runs = append(runs, r)
	}
	return runs
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Question)
		factor float64
		tamper func(*record.StoredRun)
		want   string
		reason string
	}{
		{name: "faster", factor: 1.10, want: "better", reason: "above the 2 % margin"},
		{name: "slower", factor: 0.90, want: "worse", reason: "below the 2 % margin"},
		{name: "the same", factor: 1.0, want: "equivalent", reason: "within 2 %"},
		{name: "a little", factor: 1.02, want: "small", reason: "direction is known"},
		{
			name: "lever did not act", factor: 1.1, want: "void", reason: "io-threads did not act: lanes is 1 in both arms",
			tamper: func(r *record.StoredRun) { r.Run.Stats.Lanes = 1 },
		},
		{
			name: "another knob differs", factor: 1.1, want: "void", reason: "the arms differ in cache-mb, io-threads, not in io-threads alone",
			tamper: func(r *record.StoredRun) { r.Run.Config.CacheMB = 100 * r.Run.Config.IOThreads },
		},
		{
			name: "the lever was resolved away", factor: 1.1, want: "void", reason: "io-threads resolved to the same value",
			tamper: func(r *record.StoredRun) { r.Run.Config.IOThreads = 2 },
		},
		{
			name: "an arm is not steady", factor: 1.1, want: "void", reason: "resolved to different cache-mb",
			tamper: func(r *record.StoredRun) { r.Run.Config.CacheMB = r.Slot.Index },
		},
		{
			name: "other tokens", factor: 1.1, want: "void", reason: "the tokens differ",
			tamper: func(r *record.StoredRun) { r.Run.TokenHash = r.Slot.Arm },
		},
		{
			name: "fewer tokens", factor: 1.1, want: "void", reason: "32 prompt and 64 decoded tokens against 32 and 60",
			tamper: func(r *record.StoredRun) {
				if r.Slot.Index == 7 {
					r.Run.Measured.DecodeTokens = 60
				}
			},
		},
		{
			name: "fewer experts", factor: 1.1, want: "void", reason: "experts routed against",
			tamper: func(r *record.StoredRun) {
				if r.Slot.Arm == "4" {
					r.Run.Stats.ExpertsRouted--
				}
			},
		},
		{
			name: "killed", factor: 1.1, want: "void", reason: "every run of io-threads 4 was killed: killed by its memory limit",
			tamper: func(r *record.StoredRun) {
				if r.Slot.Arm == "4" {
					r.Run.State, r.Run.Error = record.StateKilled, "killed by its memory limit"
				}
			},
		},
		{
			name: "killed at times", factor: 1.1, want: "undecided", reason: "5 pairs can give a 93.8 % interval at most; 6 are the fewest for 95.0 %; in 3 of 8 pairs a run died",
			tamper: func(r *record.StoredRun) {
				if r.Slot.Arm == "4" && r.Slot.Block < 3 {
					r.Run.State = record.StateTimeout
				}
			},
		},
		{
			name: "killed once", factor: 1.1, want: "better", reason: "in 1 of 8 pairs a run died",
			tamper: func(r *record.StoredRun) {
				if r.Slot.Arm == "4" && r.Slot.Block == 3 {
					r.Run.State = record.StateFailed
				}
			},
		},
		{
			name: "warm though cold was asked", factor: 1.1, want: "void", reason: "30 % of the model stayed in it",
			change: func(q *Question) { q.CacheState = CacheCold },
			tamper: func(r *record.StoredRun) { r.Run.EnvBefore.CachedModelFrac = 0.3 },
		},
		{
			name: "cold and verified", factor: 1.1, want: "better", reason: "margin",
			change: func(q *Question) { q.CacheState = CacheCold },
		},
		{
			name: "cold and nobody knows", factor: 1.1, want: "void", reason: "nobody could verify",
			change: func(q *Question) { q.CacheState = CacheCold },
			tamper: func(r *record.StoredRun) { r.Run.EnvBefore.CachedModelFrac = -1 },
		},
		{
			name: "five pairs", factor: 1.1, want: "undecided", reason: "5 pairs can give a 93.8 % interval at most",
			change: func(q *Question) { q.Pairs, q.ExactPairs = 5, true },
		},
	} {
		q := lanesQuestion(t, 8, "1", "4")
		if c.change != nil {
			c.change(&q)
		}
		e := register(t, q)
		v := Judge(e, steady(e, map[string]float64{"4": c.factor}, c.tamper))
		got := v.Comparisons[0]
		if got.Verdict != c.want || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got.Verdict, got.Reason, c.want, c.reason)
		}
		if c.want == "better" && (got.Effect < 0.09 || got.Effect > 0.11 || got.Lo > 0.1 || got.Hi < 0.1) {
			t.Errorf("%s: effect %v [%v, %v], want 0.10", c.name, got.Effect, got.Lo, got.Hi)
		}
		if again := Judge(e, steady(e, map[string]float64{"4": c.factor}, c.tamper)); cmp.Diff(v, again) != "" {
			t.Errorf("%s: judged twice, two verdicts: %s", c.name, cmp.Diff(v, again))
		}
	}
}

// With one arm killed the others are judged all the same, in a family that
// keeps its size.
func TestKilledArmLeavesTheOthers(t *testing.T) {
	e := register(t, lanesQuestion(t, 8, "1", "2", "4"))
	v := Judge(e, steady(e, map[string]float64{"2": 1.1, "4": 1.2}, func(r *record.StoredRun) {
		if r.Slot.Arm == "4" {
			r.Run.State, r.Run.Error = record.StateKilled, "killed by its memory limit of 500 MiB"
		}
	}))
	if v.Comparisons[0].Verdict != "better" || v.Comparisons[1].Verdict != "void" {
		t.Errorf("verdicts %s and %s", v.Comparisons[0].Verdict, v.Comparisons[1].Verdict)
	}
	if got, want := v.Comparisons[0].PHolm, 2.0/128; math.Abs(got-want) > 1e-12 {
		t.Errorf("Holm p %v, want %v: the family is two", got, want)
	}
	if len(v.Warnings) == 0 || !strings.Contains(v.Warnings[0], "killed: 8 of 8 runs of io-threads 4 (killed by its memory limit of 500 MiB)") {
		t.Errorf("warnings %q", v.Warnings)
	}
	sum := Summarise(e, steady(e, nil, nil))
	if len(sum) != 3 || sum[0].Runs != 8 || math.Abs(sum[0].Mean-20) > 0.2 {
		t.Errorf("summary %+v", sum)
	}
}

func TestBitsMayChangeForSomeLevers(t *testing.T) {
	p, err := Lever("repack")
	if err != nil {
		t.Fatal(err)
	}
	q := lanesQuestion(t, 8, "1", "4")
	q.Lever = "repack"
	if q.Arms, err = SweepArms(p, []string{"off", "on"}, baseConfig()); err != nil {
		t.Fatal(err)
	}
	e := register(t, q)
	v := Judge(e, steady(e, map[string]float64{"on": 1.2}, func(r *record.StoredRun) {
		r.Run.TokenHash = r.Slot.Arm
		if r.Slot.Arm == "on" {
			r.Run.Stats.RepackedBytes = 1 << 20
		}
	}))
	if v.Comparisons[0].Verdict != "better" {
		t.Errorf("%s: %s", v.Comparisons[0].Verdict, v.Comparisons[0].Reason)
	}
	if len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "different tokens") {
		t.Errorf("warnings %q", v.Warnings)
	}
}

// threads-batch follows threads where it was not set.
// The routers' count follows the width of the graphs: no unequal work.
func TestWiderGraphsRouteFewer(t *testing.T) {
	p, err := Lever("ubatch")
	if err != nil {
		t.Fatal(err)
	}
	q := lanesQuestion(t, 8, "1", "4")
	q.Lever, q.Metric = "ubatch", MetricPrefill
	if q.Arms, err = SweepArms(p, []string{"64", "512"}, baseConfig()); err != nil {
		t.Fatal(err)
	}
	e := register(t, q)
	v := Judge(e, steady(e, map[string]float64{"512": 1.5}, func(r *record.StoredRun) {
		r.Run.Stats.PrefillGraphs = int64(1024 / r.Run.Config.UBatchSize)
		r.Run.Stats.ExpertsRouted += 8 * r.Run.Stats.PrefillGraphs
	}))
	if got := v.Comparisons[0]; got.Verdict != "better" {
		t.Errorf("%s (%s)", got.Verdict, got.Reason)
	}
}

func TestFollowingKnob(t *testing.T) {
	p, err := Lever("threads")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		batch int
		want  string
	}{{0, "better"}, {2, "void"}} {
		base := baseConfig()
		base.ThreadsBatch = c.batch
		q := lanesQuestion(t, 8, "1", "4")
		q.Lever = "threads"
		if q.Arms, err = SweepArms(p, []string{"1", "2"}, base); err != nil {
			t.Fatal(err)
		}
		e := register(t, q)
		v := Judge(e, steady(e, map[string]float64{"2": 1.2}, func(r *record.StoredRun) {
			r.Run.Config.ThreadsBatch = r.Run.Config.Threads
			r.Run.Stats.ComputeThreads = int64(r.Run.Config.Threads)
		}))
		if got := v.Comparisons[0]; got.Verdict != c.want {
			t.Errorf("--threads-batch %d: %s (%s)", c.batch, got.Verdict, got.Reason)
		}
	}
}

func TestAAMustBeEqual(t *testing.T) {
	q := lanesQuestion(t, 8, "1", "4")
	q.Kind, q.Lever, q.Arms = KindAA, "", AAArms(baseConfig())
	e := register(t, q)
	if v := Judge(e, steady(e, nil, nil)); v.Comparisons[0].Verdict != "equivalent" {
		t.Errorf("%+v", v.Comparisons[0])
	}
	v := Judge(e, steady(e, nil, func(r *record.StoredRun) {
		if r.Slot.Arm == "A2" {
			r.Run.Config.Threads = 7
		}
	}))
	if c := v.Comparisons[0]; c.Verdict != "void" || !strings.Contains(c.Reason, "differ in threads") {
		t.Errorf("%+v", c)
	}
}

func TestBandIsJudged(t *testing.T) {
	for factor, want := range map[float64]string{1.10: "confirmed", 1.3: "refuted", 1.15: "undecided"} {
		q := lanesQuestion(t, 8, "1", "4")
		b, err := ParseBand("better by 5%..15%", 0.02)
		if err != nil {
			t.Fatal(err)
		}
		q.Band = &b
		e := register(t, q)
		if !strings.Contains(e.Falsifier, "5.0 to 15.0 % faster") {
			t.Errorf("falsifier %q", e.Falsifier)
		}
		c := Judge(e, steady(e, map[string]float64{"4": factor}, nil)).Comparisons[0]
		if c.Predicted != want {
			t.Errorf("a factor of %v is %s (%s), want %s", factor, c.Predicted, c.PredictedReason, want)
		}
		void := Judge(e, steady(e, map[string]float64{"4": factor}, func(r *record.StoredRun) { r.Run.Stats.Lanes = 1 })).Comparisons[0]
		if void.Predicted != "void" {
			t.Errorf("with a lever that did not act: %s", void.Predicted)
		}
	}
}

func TestContaminationsAreReported(t *testing.T) {
	e := register(t, lanesQuestion(t, 8, "1", "4"))
	v := Judge(e, steady(e, map[string]float64{"4": 1.1}, func(r *record.StoredRun) {
		r.Run.EnvBefore.MemAvailable, r.Run.EnvBefore.TempC, r.Run.EnvAfter.TempC = 1000, 40, 45
		r.Run.Measured.MajorFaults = 20
		switch r.Slot.Index {
		case 3:
			r.Run.Measured.MajorFaults = 5000
		case 4, 5:
			r.Run.Warnings = []string{"something of the run's own", gatePrefix + "started over 5 degrees warmer than the first run"}
		case 6:
			r.Run.EnvAfter.TempC = 70
		case 7:
			r.Run.EnvBefore.PSIIO = 60
		case 8:
			r.Run.EnvBefore.MemAvailable = 100
		case 9:
			r.Run.EnvBefore.Governor, r.Run.EnvAfter.SwapUsed = "powersave", 1<<30
		}
	}))
	all := strings.Join(v.Warnings, "\n")
	for _, want := range []string{
		"major-faults: 1 of 8 runs", "up to 5000 against a median of 20", "entry-gate: started over 5 degrees warmer than the first run (2 of 16 runs)",
		"thermal: ", "pressure: ", "memory: ", "governor: ", "swap: ",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if v.Comparisons[0].Verdict != "better" {
		t.Errorf("warnings do not change a verdict: %s", v.Comparisons[0].Verdict)
	}
}

// What our own run before waited for is in the averages and no warning: the
// moment before the run decides, where it was looked at.
func TestPressureIsOfOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		env  record.Environment
		warn bool
	}{
		{"averages only", record.Environment{PSIIO: 60}, true},
		{"the run before", record.Environment{PSIIO: 60, PSIMem: 60, Entry: &record.Stalls{}}, false},
		{"others, for storage", record.Environment{Entry: &record.Stalls{IO: 60}}, true},
		{"others, for memory", record.Environment{Entry: &record.Stalls{Mem: 60}}, true},
	} {
		if got := underPressure(&c.env); got != c.warn {
			t.Errorf("%s: %v, want %v", c.name, got, c.warn)
		}
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	from := record.Environment{At: at, IOWaited: time.Second, MemWaited: time.Second}
	to := record.Environment{At: at.Add(200 * time.Millisecond), IOWaited: 1100 * time.Millisecond, MemWaited: time.Second}
	if s := stalls(&from, &to); s == nil || math.Abs(s.IO-50) > 1e-9 || s.Mem != 0 {
		t.Errorf("half of 200 ms in storage is %+v", s)
	}
	if s := stalls(&record.Environment{At: at}, &record.Environment{At: at.Add(time.Second)}); s != nil {
		t.Errorf("a kernel that does not say: %+v", s)
	}
}

// A verdict quotes a run's error without its paths: so it can be shared, and is
// the same where the paths are not known.
func TestVerdictNamesNoPath(t *testing.T) {
	e := register(t, lanesQuestion(t, 6, "1", "4"))
	failed := func(model, text string) record.Verdict {
		return Judge(e, steady(e, nil, func(r *record.StoredRun) {
			r.Run.Config.Model = model
			if r.Slot.Arm == "4" {
				r.Run.State, r.Run.Error = record.StateFailed, text
			}
		}))
	}
	const folder = "/home/al ice/models"
	home := failed(folder+"/m.gguf", "open "+folder+"/m.gguf: no such file")
	if raw, err := json.Marshal(home); err != nil || strings.Contains(string(raw), "ice/models") {
		t.Errorf("%v: %s", err, raw)
	}
	if !strings.Contains(home.Comparisons[0].Reason, "no such file") {
		t.Errorf("the reason says nothing: %q", home.Comparisons[0].Reason)
	}
	if diff := cmp.Diff(home, failed("", "open <path>: no such file")); diff != "" {
		t.Errorf("elsewhere (-home +elsewhere):\n%s", diff)
	}
}

func TestDriftAndSlotAreReported(t *testing.T) {
	e := register(t, lanesQuestion(t, 10, "1", "4"))
	m := engine{rng: rand.New(rand.NewPCG(2, 2)), noise: 0.002, drift: -0.01}
	v := conduct(t, e, &m)
	if !strings.Contains(strings.Join(v.Warnings, "\n"), "drift: runs changed by -") || v.Drift == nil || math.Abs(v.Drift.Estimate+0.01) > 0.002 {
		t.Errorf("drift %+v, warnings %q", v.Drift, v.Warnings)
	}
	v = Judge(e, steady(e, nil, func(r *record.StoredRun) {
		if r.Slot.Pos == 0 {
			r.Run.Measured.DecodeSPerToken *= 1.2
		}
	}))
	if !strings.Contains(strings.Join(v.Warnings, "\n"), "slot-effect: the first run of a block was -") {
		t.Errorf("slot %+v, warnings %q", v.Slot, v.Warnings)
	}
}
