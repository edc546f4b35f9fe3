package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// designFlags fix an experiment: given with --resume they must be left out,
// because the registered ones hold.
var designFlags = []string{
	"values", "baseline", "pairs", "exact-pairs", "design", "order-seed", "margin", "metric", "looks", "warmup",
	"cache-state", "predict", "run-memory-mb", "dry-run",
}

// resume goes on with a registered experiment.
func (s *sweeper) resume(ctx context.Context) error {
	if err := mustExist(s.app.dbPath); err != nil {
		return usageError{fmt.Errorf("--resume: %w", err), "give --db the path that the sweep was started with"}
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.store.Close()
	e, err := s.chosen(ctx)
	if err != nil {
		return err
	}
	if err := s.unchanged(ctx, &e); err != nil {
		return err
	}
	c, unlock, err := s.conductor(ctx, &e)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.noteResume(ctx, &e); err != nil {
		return err
	}
	v, err := c.Resume(ctx, e)
	return s.conclude(ctx, e, v, err)
}

// noteResume appends to the ledger that a half-done experiment goes on.
func (s *sweeper) noteResume(ctx context.Context, e *record.Experiment) error {
	st, err := experimentStatus(ctx, s.store, e)
	if err != nil || st.verdict != nil {
		return err
	}
	why := fmt.Sprintf("%d runs stored, %d left", st.runs, st.left)
	return s.store.AddEvent(ctx, record.Event{Kind: record.EventResume, Subject: e.ID, Why: why, At: time.Now()})
}

// chosen is the experiment named, or the latest that is not done.
func (s *sweeper) chosen(ctx context.Context) (record.Experiment, error) {
	if s.flags.resume != latest {
		e, err := s.store.Experiment(ctx, s.flags.resume)
		if err != nil {
			return e, codedError{err, exitUsage, "`bmoe experiments list` shows what there is"}
		}
		return e, s.notVoid(ctx, &e)
	}
	all, err := s.store.Experiments(ctx)
	if err != nil {
		return record.Experiment{}, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		e := all[i]
		if !s.meant(&e) || s.notVoid(ctx, &e) != nil {
			continue
		}
		status, err := experimentStatus(ctx, s.store, &e)
		if err != nil {
			return e, err
		}
		if status.verdict == nil { // with all its runs stored it may still lack its verdict
			return e, nil
		}
	}
	return record.Experiment{}, usageError{errors.New("--resume: no experiment was stopped half way"), "`bmoe experiments list` shows what there is"}
}

// meant says that an experiment is the one the other flags describe, if any.
func (s *sweeper) meant(e *record.Experiment) bool {
	name, _, _ := strings.Cut(s.flags.lever, "=")
	switch {
	case e.Kind == experiments.KindPlan || len(e.Arms) == 0:
		return false
	case name != "" && e.Lever != name, s.flags.aa && e.Kind != experiments.KindAA, s.flags.earns && e.Kind != experiments.KindEarns:
		return false
	}
	path := s.knobs.cfg.Model
	return path == "" || path == e.Arms[0].Config.Model
}

func (s *sweeper) notVoid(ctx context.Context, e *record.Experiment) error {
	why, err := voided(ctx, s.store, e.ID)
	if err == nil && why != "" {
		err = usageError{fmt.Errorf("experiment %s was declared void: %s", experiments.Short(e.ID), why), "ask the question anew, without --resume"}
	}
	return err
}

// unchanged refuses to go on when what was registered no longer holds.
func (s *sweeper) unchanged(ctx context.Context, e *record.Experiment) error {
	for _, name := range designFlags {
		if s.changed(name) && s.flags.differs(name, e) {
			return usageError{fmt.Errorf("--%s was registered with experiment %s and cannot change", name, experiments.Short(e.ID)), "leave it out, or start a new experiment without --resume"}
		}
	}
	if err := s.knobsUnchanged(e); err != nil {
		return err
	}
	d := newDocument(ctx, &runner{app: s.app})
	path := e.Arms[0].Config.Model
	if path == "" {
		return withHint(fmt.Errorf("experiment %s came from another database, without the path of its model", experiments.Short(e.ID)), "it can only go on where it was started")
	}
	m, err := model.Open(path)
	if err != nil {
		return withHint(err, "the experiment needs the model where it was")
	}
	found, err := modelRecord(m)
	if err != nil {
		return err
	}
	fresh := "start a new experiment, without --resume"
	switch {
	case d.run.Machine.ContentID() != e.Machine.ContentID():
		return withHint(fmt.Errorf("experiment %s belongs to another machine", experiments.Short(e.ID)), fresh)
	case found.ContentID() != e.Model.ContentID():
		return withHint(fmt.Errorf("%s is no longer the model that experiment %s was registered with", path, experiments.Short(e.ID)), fresh)
	case d.run.Build.ContentID() != e.Build.ContentID():
		return withHint(fmt.Errorf("experiment %s was registered with another build of this program", experiments.Short(e.ID)), fresh)
	}
	return nil
}

// knobsUnchanged refuses a knob that is given another value than every arm has.
func (s *sweeper) knobsUnchanged(e *record.Experiment) error {
	_, pins, err := s.knobs.resolve()
	if err != nil {
		return err
	}
	for name, text := range pins {
		p, ok := config.Lookup(name)
		if !ok || name == "prompt" || name == "file" || name == e.Lever || p.Get(&e.Arms[0].Config) == text {
			continue
		}
		return usageError{fmt.Errorf("%s %s: experiment %s was registered with %s", p.Flag(), text, experiments.Short(e.ID), p.Get(&e.Arms[0].Config)), "leave it out, or start a new experiment without --resume"}
	}
	return nil
}

// differs says that a design flag asks for something else than was registered.
func (f *sweepFlags) differs(name string, e *record.Experiment) bool {
	t := experiments.TermsOf(e)
	switch name {
	case "pairs":
		return f.pairs > e.Pairs // fewer were raised
	case "design":
		random := f.design == experiments.DesignRandom && len(e.Arms) > 2 // random means blocks then
		return f.design != e.Design && !random
	case "order-seed":
		return f.orderSeed != e.Seed
	case "metric":
		return f.metric != e.Metric
	case "looks":
		return f.looks != e.Looks
	case "warmup":
		return f.warmup != t.Warmup
	case "cache-state":
		return f.cacheState != e.CacheState
	case "predict":
		return f.predict != t.Predict
	case "run-memory-mb":
		return f.runMemory != t.RunMemoryMB
	case "margin":
		m, err := experiments.ParseMargin(f.margin)
		return err != nil || m != e.Margin
	case "values":
		return !sameValues(f.values, e)
	case "baseline":
		return f.baseline != e.Baseline
	}
	return name == "dry-run"
}

func sameValues(text string, e *record.Experiment) bool {
	p, err := experiments.Lever(e.Lever)
	if err != nil {
		return false
	}
	values, err := experiments.ParseValues(p, text)
	if err != nil {
		return false
	}
	for _, v := range values {
		found := false
		for _, a := range e.Arms {
			found = found || a.Value == v
		}
		if !found {
			return false
		}
	}
	return true
}

// status is how far an experiment has come.
type status struct {
	runs, left int
	verdict    *record.Verdict
}

func experimentStatus(ctx context.Context, store *results.Store, e *record.Experiment) (status, error) {
	runs, err := results.Conductor{Store: store}.Runs(ctx, e.ID)
	if err != nil {
		return status{}, err
	}
	st := status{runs: len(runs), left: experiments.Remaining(e, runs)}
	verdicts, err := store.Verdicts(ctx, e.ID)
	if err != nil {
		return st, err
	}
	if n := len(verdicts); n > 0 {
		st.verdict = &verdicts[n-1]
	}
	return st, nil
}
