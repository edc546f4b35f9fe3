package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/results/record"
)

// sweepPrompt is read when none is given.
const sweepPrompt = `The harbour lay quiet in the first light. Boats rocked against their moorings, and the smell of salt and tar drifted up the narrow streets to the market, where the baker was already setting out loaves and the fishermen argued about the weather. `

// sweepTokens are decoded in each run unless -n says otherwise.
const sweepTokens = 64

// defaultQuestion fills in what a benchmark needs and nobody typed.
func defaultQuestion(cfg *config.Config, pins planner.Pins, lever, metric string) {
	if cfg.Prompt == "" && cfg.File == "" {
		cfg.Prompt = sweepPrompt
		if lever == "ubatch" || lever == "prefill-slots" || lever == "prefill-device" || metric == experiments.MetricPrefill {
			cfg.Prompt = strings.Repeat(sweepPrompt, 8) // wider than a graph
		}
	}
	if _, ok := pins["predict"]; !ok {
		cfg.Predict = sweepTokens
	}
	_, random := pins["random-tokens"]
	_, eos := pins["ignore-eos"]
	if !random {
		cfg.RandomTokens = 1
	}
	if !eos {
		cfg.IgnoreEOS = true
	}
}

// asked is a question on its way to being registered.
type asked struct {
	q       experiments.Question
	lever   *config.Param
	base    config.Config
	pins    planner.Pins
	profile planner.Profile
	plan    *planner.Plan
	notes   []string
}

// ask turns flags into a question about the model.
func (s *sweeper) ask(ctx context.Context) (*asked, error) {
	k := &asked{}
	var err error
	if k.q.Kind, err = s.flags.kind(); err != nil {
		return nil, err
	}
	if k.q.Kind == experiments.KindSweep {
		name, values, has := strings.Cut(s.flags.lever, "=")
		if has && s.flags.values != "" {
			return nil, usageError{errors.New("--lever NAME=VALUES and --values given together"), "give the values once"}
		}
		if has {
			s.flags.values = values
		}
		if k.lever, err = experiments.Lever(name); err != nil {
			return nil, usageError{err, "`bmoe sweep --help` shows how a lever is given"}
		}
		k.q.Lever = k.lever.Name
	}
	if err := s.numberOfTokens(); err != nil {
		return nil, err
	}
	if k.base, k.pins, err = s.knobs.resolve(); err != nil {
		return nil, err
	}
	if k.base.Model == "" {
		return nil, errNoModel
	}
	if err := s.conditions(k); err != nil {
		return nil, err
	}
	if err := s.identify(ctx, k); err != nil {
		return nil, err
	}
	defaultQuestion(&k.base, k.pins, k.q.Lever, k.q.Metric)
	if err := s.inlinePrompt(ctx, &k.base); err != nil {
		return nil, err
	}
	if err := s.settings(ctx, k); err != nil {
		return nil, err
	}
	if err := s.arms(k); err != nil {
		return nil, err
	}
	s.predictions(k)
	return k, nil
}

// numberOfTokens takes --predict 64 as `bmoe run` does: a number is no effect.
func (s *sweeper) numberOfTokens() error {
	if _, err := strconv.Atoi(s.flags.predict); err != nil {
		return nil
	}
	p, _ := config.Lookup("predict")
	text := s.flags.predict
	s.flags.predict = ""
	if err := (&knobValue{k: s.knobs, p: *p}).Set(text); err != nil {
		return usageError{err, "-n gives the tokens to decode, --predict the effect you expect"}
	}
	return nil
}

// What nobody means: more runs before the first that counts, and more memory,
// than there can be.
const (
	mostWarmup    = 100
	mostRunMemory = 1 << 30
)

// conditions reads the flags that say how the question is asked.
func (s *sweeper) conditions(k *asked) error {
	f := s.flags
	margin, err := experiments.ParseMargin(f.margin)
	if err != nil {
		return usageError{err, "`--margin 2%` calls differences below 2 % equivalent"}
	}
	if f.warmup < 0 || f.entryWait < 0 || f.runTimeout < 0 || f.maxTime < 0 || f.runMemory < 0 {
		return usageError{errors.New("--warmup, --entry-wait, --run-timeout, --run-memory-mb and --max-time cannot be negative"), "give 0 or more"}
	}
	if f.warmup > mostWarmup || f.runMemory > mostRunMemory || f.looks < 1 {
		return usageError{fmt.Errorf("--warmup %d, --run-memory-mb %d, --looks %d: want at most %d, at most %d, at least 1", f.warmup, f.runMemory, f.looks, mostWarmup, mostRunMemory), "leave out the one that is not so"}
	}
	k.q.Metric, k.q.Design, k.q.Pairs, k.q.ExactPairs, k.q.Looks = f.metric, f.design, f.pairs, f.exactPairs, f.looks
	k.q.Margin, k.q.Alpha, k.q.CacheState, k.q.Baseline = margin, 0.05, f.cacheState, f.baseline
	k.q.Seed = f.orderSeed
	if _, ok := k.pins["seed"]; ok && !s.changed("order-seed") {
		k.q.Seed = k.base.Seed
	}
	k.q.Terms = experiments.Terms{
		Warmup: f.warmup, EntryWaitS: f.entryWait.Seconds(), RunTimeoutS: f.runTimeout.Seconds(),
		RunMemoryMB: f.runMemory, MaxTimeS: f.maxTime.Seconds(), Predict: f.predict,
	}
	if f.runMemory > 0 && experiments.CanDrop && !s.changed("cache-state") {
		// Pages that are cached already were charged to whoever read them.
		k.q.CacheState = experiments.CacheCold
		k.notes = append(k.notes, "--run-memory-mb counts only what a run reads itself: each starts with --cache-state cold")
	}
	if k.q.CacheState == experiments.CacheCold && !s.changed("warmup") {
		k.q.Terms.Warmup = 0
	}
	if f.predict != "" {
		band, err := experiments.ParseBand(f.predict, margin)
		if err != nil {
			return usageError{err, `for instance --predict "better by 5%..15%"`}
		}
		k.q.Band = &band
	}
	return nil
}

// identify says what machine, build and model the question is about.
func (s *sweeper) identify(ctx context.Context, k *asked) error {
	d := newDocument(ctx, &runner{app: s.app})
	if err := d.identify(k.base.Model); err != nil {
		return err
	}
	k.q.Machine, k.q.Build, k.q.Model, k.q.At = d.run.Machine, d.run.Build, d.run.Model, time.Now().UTC()
	if s.needsExperts(k) && k.q.Model.Experts == 0 {
		return usageError{fmt.Errorf("-m %s: a dense model has no experts to stream, so --lever %s cannot act", k.base.Model, k.q.Lever), "give a Mixture-of-Experts model, or sweep threads or repack"}
	}
	return nil
}

func (s *sweeper) needsExperts(k *asked) bool {
	return k.lever != nil && experiments.Streams(k.q.Lever)
}

// inlinePrompt puts the text of -f into the configuration: a child must not
// depend on a file that may change between runs.
func (s *sweeper) inlinePrompt(ctx context.Context, cfg *config.Config) error {
	if cfg.File == "" {
		return nil
	}
	if cfg.Prompt != "" {
		return usageError{errors.New("-p and -f given together"), "give one of them"}
	}
	text, err := promptFile(ctx, s.app.stdin, cfg.File)
	cfg.Prompt, cfg.File = text, ""
	return err
}

// settings completes the base configuration: planned with --auto, else as
// given with the experts streamed.
func (s *sweeper) settings(ctx context.Context, k *asked) error {
	_, streamGiven := k.pins["moe-stream"]
	moe := k.q.Model.Experts > 0
	if k.q.Kind == experiments.KindEarns {
		s.flags.auto = true
	}
	if !s.flags.auto {
		if moe && !streamGiven {
			k.base.MoeStream = true
		}
		return nil
	}
	if s.needsExperts(k) && !streamGiven {
		k.base.MoeStream = true
		k.pins["moe-stream"] = "true"
	}
	for _, name := range []string{"prompt", "predict", "random-tokens", "ignore-eos"} {
		p, _ := config.Lookup(name)
		k.pins[name] = p.Get(&k.base)
	}
	profile, plan, err := s.app.probeAndPlan(ctx, k.base, k.pins, s.flags.probe)
	if err != nil {
		return interrupted(ctx, err)
	}
	if s.flags.runMemory > 0 {
		boundMemory(&profile.Memory, int64(s.flags.runMemory)<<20)
		if plan, err = planner.Make(profile, k.base, k.pins, planner.DefaultPolicy()); err != nil {
			return err
		}
	}
	k.profile, k.plan, k.base = profile, &plan, plan.Config
	return nil
}

// boundMemory tells the planner of the limit that each run is going to have,
// which this process, whose memory was measured, has not.
func boundMemory(m *planner.MemoryFacts, limit int64) {
	const why = "--run-memory-mb: the memory group each run is put into"
	if room, ok := m.Holdable.Get(); ok && room <= limit {
		return
	}
	m.LimitBytes = planner.MeasuredFact(limit, 0, why)
	m.LimitHeadroom = planner.MeasuredFact(limit, 0, why)
	m.Holdable = planner.MeasuredFact(limit, 0, why)
}

// arms builds what is compared.
func (s *sweeper) arms(k *asked) error {
	switch k.q.Kind {
	case experiments.KindAA:
		k.q.Arms = experiments.AAArms(k.base)
		return nil
	case experiments.KindEarns:
		return s.planArms(k)
	}
	values, err := s.values(k)
	if err != nil {
		return err
	}
	s.makeRoom(k)
	if k.q.Baseline != "" {
		base, err := experiments.ParseValues(k.lever, k.q.Baseline)
		if err != nil || len(base) != 1 {
			return usageError{fmt.Errorf("--baseline %q is no value of %s", k.q.Baseline, k.q.Lever), "name one of the values"}
		}
		k.q.Baseline = base[0]
		if !slices.Contains(values, base[0]) {
			values = append(base, values...)
		}
	}
	k.q.Arms, err = experiments.SweepArms(k.lever, values, k.base)
	return err
}

// planArms compares the plan with what --values names, or with the defaults
// and each decision taken back.
func (s *sweeper) planArms(k *asked) error {
	arms, allowed := experiments.PlanArms(*k.plan)
	var names []string
	if s.flags.values != "" {
		names = strings.Split(s.flags.values, ",")
	}
	kept, left, err := experiments.Retain(arms, names, k.q.Metric)
	if err != nil {
		return usageError{err, "leave --values out to compare it with all of them"}
	}
	if len(left) > 0 {
		k.notes = append(k.notes, "decoding does not feel "+strings.Join(left, ", ")+": not taken back (name them with --values, or use --metric prefill)")
	}
	k.q.Arms, k.q.Terms.Allowed = kept, allowed
	k.q.Terms.Favour, k.q.Baseline = experiments.ArmPlan, kept[len(kept)-1].Name
	for _, a := range kept {
		if a.Name == experiments.ArmMmap {
			k.q.Baseline = a.Name
		}
	}
	return nil
}

// values are those given, or the lever's own list for this machine.
func (s *sweeper) values(k *asked) ([]string, error) {
	limits := experiments.Limits{Threads: k.q.Machine.Threads, RoutedBytes: k.q.Model.RoutedBytes, TokenCycle: k.q.Model.TokenCycle}
	limits.HoldableBytes, limits.Devices = s.holdable(), k.devices()
	if s.flags.values == "" {
		values := experiments.DefaultValues(k.q.Lever, limits)
		if len(values) < 2 {
			hint := "give --values LIST"
			if k.q.Lever == "prefill-device" {
				hint = "name RPC servers with --rpc, let --auto look for devices, or give --values none,NAME"
			}
			return nil, usageError{fmt.Errorf("--lever %s has no two values of its own that fit here", k.q.Lever), hint}
		}
		return values, nil
	}
	values, err := experiments.ParseValues(k.lever, s.flags.values)
	if err != nil {
		return nil, usageError{err, "lists are 1,2,4 or 1-8*2 (doubling) or 1-8+2 (step)"}
	}
	if len(values) == 1 {
		own := experiments.Shown(k.lever, &k.base)
		if own == values[0] {
			return nil, usageError{fmt.Errorf("--values %s: one value, and it is what %s is set to already", s.flags.values, k.q.Lever), "give two or more values"}
		}
		values = append([]string{own}, values...)
	}
	return values, s.withinLedger(k, values, limits.HoldableBytes)
}

// devices are those a plan's probe could use; without one, the RPC servers'.
func (k *asked) devices() (names []string) {
	if k.plan == nil {
		for range config.Servers(k.base.RPC) {
			names = append(names, device.RPCName(len(names)))
		}
		return names
	}
	for i := range k.profile.Devices {
		if d := &k.profile.Devices[i]; planner.Ask(d.Usable) == planner.Yes {
			names = append(names, d.Name)
		}
	}
	return names
}

// holdable is the room for what a run holds, 0 when unknown. A run that is
// given a limit of its own has no more than that.
func (s *sweeper) holdable() int64 {
	room, ok := probes.Local().Memory().Holdable.Get()
	if limit := int64(s.flags.runMemory) << 20; limit > 0 && (!ok || limit < room) {
		return limit
	}
	if !ok {
		return 0
	}
	return room
}

// withinLedger refuses cache sizes that cannot be held.
func (s *sweeper) withinLedger(k *asked, values []string, holdable int64) error {
	if k.q.Lever != "cache-mb" || holdable <= 0 || s.flags.overLedger {
		return nil
	}
	for _, v := range values {
		mb, err := strconv.ParseInt(v, 10, 64)
		if err == nil && min(mb<<20, k.q.Model.RoutedBytes) > holdable {
			return usageError{fmt.Errorf("--values: a cache of %d MiB is more than the %d MiB that can be held here", mb, holdable>>20), "leave it out, or give --over-ledger to see such a run die"}
		}
	}
	return nil
}

// makeRoom changes knobs without which the lever is refused, where nobody
// typed them.
func (s *sweeper) makeRoom(k *asked) {
	if _, typed := k.pins["dense-weights"]; k.q.Lever == "release-mmap" && k.base.DenseWeights == "mmap" && !typed {
		k.base.DenseWeights = "anon"
		k.notes = append(k.notes, "release-mmap needs copied dense weights: --dense-weights anon in both arms")
	}
	if _, typed := k.pins["release-mmap"]; k.q.Lever == "dense-weights" && k.base.ReleaseMmap && !typed {
		k.base.ReleaseMmap = false
		k.notes = append(k.notes, "dense-weights mmap and release-mmap exclude each other: release-mmap off in every arm")
	}
}

// predictions asks the planner what it expects of each arm exactly as it will
// be run: every knob pinned.
func (s *sweeper) predictions(k *asked) {
	if k.plan == nil {
		return
	}
	for i := range k.q.Arms {
		arm := &k.q.Arms[i]
		pins := planner.Pins{}
		for _, p := range config.Table() {
			pins[p.Name] = p.Get(&arm.Config)
		}
		plan, err := planner.Make(k.profile, arm.Config, pins, planner.DefaultPolicy())
		if err != nil {
			k.notes = append(k.notes, fmt.Sprintf("no prediction for %s: %v", arm.Name, err))
			continue
		}
		pred := record.NewPrediction(plan.Prediction, k.q.At)
		arm.Prediction = &pred
	}
}
