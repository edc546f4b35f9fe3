package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// ErrInterrupted says that the caller stopped an experiment; what was run is
// stored and the rest can be resumed.
var ErrInterrupted = errors.New("interrupted")

// ErrConcluded says that an experiment has its verdict already.
var ErrConcluded = errors.New("already concluded")

// PageCache empties the page cache of a model's files. Nil where the platform
// has no way to.
type PageCache func(modelPath string) error

// Conductor runs registered experiments.
type Conductor struct {
	Store    Store
	Runner   Runner
	Sensor   Sensor
	Drop     PageCache
	Progress func(Progress)   // may be nil
	Now      func() time.Time // nil: the clock
	Gate     *Gate            // nil: one is made from the experiment's terms
	RunID    RunID            // nil: record.RunContentID
}

// RunID identifies a run at its place in an experiment.
type RunID func(r record.Run, experiment string, slot record.Slot, attempt int) string

// session is one sitting of an experiment.
type session struct {
	*Conductor
	e       *record.Experiment
	terms   Terms
	gate    *Gate
	runID   RunID
	runs    []record.StoredRun
	started time.Time
	done    int // runs of the schedule with an outcome
	ran     int // runs in this session
	spent   time.Duration
	longest time.Duration // of a block, in this session
}

// Start registers e in the store and runs it.
func (c *Conductor) Start(ctx context.Context, e record.Experiment) (record.Verdict, error) {
	if err := c.Store.SaveExperiment(ctx, e); err != nil {
		return record.Verdict{}, fmt.Errorf("register the experiment: %w", err)
	}
	return c.Resume(ctx, e)
}

// Resume runs what is left of a registered experiment, by the schedule it was
// registered with, and stores the verdict. A block that was cut short is run
// again whole. Interruption of ctx ends it with ErrInterrupted.
func (c *Conductor) Resume(ctx context.Context, e record.Experiment) (record.Verdict, error) {
	verdicts, err := c.Store.Verdicts(ctx, e.ID)
	if err != nil {
		return record.Verdict{}, fmt.Errorf("read the verdicts of %s: %w", Short(e.ID), err)
	}
	if len(verdicts) > 0 {
		return verdicts[len(verdicts)-1], fmt.Errorf("experiment %s is %w: more pairs would be a new experiment", Short(e.ID), ErrConcluded)
	}
	s, err := c.open(ctx, &e)
	if err != nil {
		return record.Verdict{}, err
	}
	if err := s.runAll(ctx); err != nil {
		return record.Verdict{}, err
	}
	v := Judge(e, s.runs)
	if err := c.Store.SaveVerdict(context.WithoutCancel(ctx), v); err != nil {
		return v, fmt.Errorf("store the verdict: %w", err)
	}
	return v, nil
}

func (c *Conductor) open(ctx context.Context, e *record.Experiment) (*session, error) {
	runs, err := c.Store.Runs(ctx, e.ID)
	if err != nil {
		return nil, fmt.Errorf("read the runs of %s: %w", Short(e.ID), err)
	}
	s := &session{Conductor: c, e: e, terms: TermsOf(e), runs: runs, gate: c.Gate, runID: c.RunID}
	if s.runID == nil {
		s.runID = record.RunContentID
	}
	s.started = s.now()
	s.done = len(e.Schedule) - Remaining(e, runs)
	if s.gate == nil {
		s.gate = &Gate{Sensor: c.Sensor, Wait: s.terms.EntryWait(), Now: c.Now}
	}
	if len(runs) > 0 {
		first := runs[0]
		for _, r := range runs {
			if r.Slot.Index < first.Slot.Index {
				first = r
			}
		}
		s.gate.SetReference(first.Run.EnvBefore)
	}
	return s, nil
}

func (s *session) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// runAll runs the blocks that have no complete attempt, in order.
func (s *session) runAll(ctx context.Context) error {
	order, slots := wantedSlots(s.e)
	for _, b := range order {
		tried := attempts(s.runs)[b]
		_, last, ok := completeAttempt(slots[b], tried)
		if ok {
			continue
		}
		if b != WarmupBlock && (s.outOfTime() || s.earlyEnd()) {
			return nil
		}
		began := s.now()
		for _, slot := range slots[b] {
			if err := s.runSlot(ctx, slot, last+1); err != nil {
				return err
			}
		}
		s.longest = max(s.longest, s.now().Sub(began))
	}
	return nil
}

// outOfTime says that another block would not end within the time given.
func (s *session) outOfTime() bool {
	if s.terms.MaxTimeS <= 0 {
		return false
	}
	return s.now().Sub(s.started)+s.longest > seconds(s.terms.MaxTimeS)
}

// earlyEnd says that the first of two looks has decided.
func (s *session) earlyEnd() bool {
	if s.e.Looks != 2 || len(completeBlocks(s.e, s.runs)) != firstLook {
		return false
	}
	for _, c := range Judge(*s.e, s.runs).Comparisons {
		if c.Verdict != string(analysis.Better) && c.Verdict != string(analysis.Worse) {
			return false
		}
	}
	return true
}

// runSlot performs one run and stores it whatever became of it.
func (s *session) runSlot(ctx context.Context, slot record.Slot, attempt int) error {
	arm := armNamed(s.e, slot.Arm)
	began := s.now()
	s.report(PhaseWaiting, slot, "")
	env, warned := s.gate.Enter(ctx, arm.Config.Model)
	if s.e.CacheState == CacheCold {
		env, warned = s.chill(ctx, arm, env, warned)
	}
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	s.report(PhaseRunning, slot, "")
	run := s.Runner.Run(ctx, Job{ExperimentID: s.e.ID, Slot: slot, Arm: arm, Attempt: attempt})
	run.EnvBefore = env
	run.EnvAfter = s.Sensor.Environment(context.WithoutCancel(ctx), arm.Config.Model)
	run.Warnings = append(run.Warnings, warned...)
	s.identify(&run, arm)
	run.RunID = s.runID(run, s.e.ID, slot, attempt)
	if err := s.Store.SaveRun(context.WithoutCancel(ctx), run, s.e.ID, slot, attempt); err != nil {
		return fmt.Errorf("store run %d of experiment %s: %w", slot.Index, Short(s.e.ID), err)
	}
	s.runs = append(s.runs, record.StoredRun{Run: run, Slot: slot, Attempt: attempt})
	if run.State == record.StateInterrupted || ctx.Err() != nil {
		return ErrInterrupted
	}
	s.ran++
	s.spent += s.now().Sub(began)
	s.done++
	s.report(PhaseEnded, slot, run.State)
	return nil
}

// identify fills in what a run that died could not say of itself.
func (s *session) identify(run *record.Run, arm record.Arm) {
	if run.Machine.OS == "" {
		run.Machine = s.e.Machine
	}
	if run.Build.Go == "" {
		run.Build = s.build()
	}
	if run.Model.Arch == "" {
		run.Model = s.e.Model
	}
	if run.Prediction == nil {
		run.Prediction = arm.Prediction
	}
}

// build is the experiment's, with the CPU module as a run that ended said it:
// who registers an experiment loads none.
func (s *session) build() record.Build {
	for i := range s.runs {
		b := s.runs[i].Run.Build
		if plain := (record.Build{Commit: b.Commit, Dirty: b.Dirty, Go: b.Go, LlamaCPP: b.LlamaCPP}); b.CPUModule != "" && plain.ContentID() == s.e.Build.ContentID() {
			return b
		}
	}
	return s.e.Build
}

// chill empties the page cache of the model and looks again.
func (s *session) chill(ctx context.Context, arm record.Arm, env record.Environment, warned []string) (record.Environment, []string) {
	if s.Drop == nil {
		env.CachedModelFrac = -1
		return env, append(warned, "cold-cache: this platform cannot empty the page cache")
	}
	if err := s.Drop(arm.Config.Model); err != nil {
		return env, append(warned, "cold-cache: "+err.Error())
	}
	busy := env.CPUBusy
	env = s.Sensor.Environment(ctx, arm.Config.Model)
	env.CPUBusy = busy
	return env, warned
}

func (s *session) report(phase Phase, slot record.Slot, state string) {
	if s.Progress == nil {
		return
	}
	p := Progress{
		Phase: phase, Arm: slot.Arm, Block: slot.Block + 1, Blocks: s.e.Pairs,
		Done: s.done, Total: len(s.e.Schedule), State: state, Elapsed: s.now().Sub(s.started),
	}
	if s.ran > 0 {
		p.ETA = s.spent / time.Duration(s.ran) * time.Duration(p.Total-p.Done)
	}
	s.Progress(p)
}

// Short is the form of an id that people read and type.
func Short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
