package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// sweeper does one `bmoe sweep`.
type sweeper struct {
	app     *app
	flags   *sweepFlags
	knobs   *knobs
	changed func(flag string) bool
	store   *results.Store
}

// lockWait is how long a sweep waits for another on this machine.
const lockWait = 10 * time.Minute

// childCommand is how a run is started; tests replace it.
var childCommand = func() (path string, args []string, err error) {
	path, err = os.Executable()
	return path, []string{"run", "--config-json", "-", "--json", "--no-record"}, err
}

func (s *sweeper) run(ctx context.Context) error {
	if s.flags.resume != "" {
		return s.resume(ctx)
	}
	k, err := s.ask(ctx)
	if err != nil {
		return err
	}
	if s.flags.dryRun {
		return s.dryRun(ctx, k)
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.store.Close()
	e, err := s.register(ctx, k)
	if err != nil {
		return err
	}
	c, unlock, err := s.conductor(ctx, &e)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := c.Start(ctx, e)
	return s.conclude(ctx, e, v, err)
}

func (s *sweeper) open(ctx context.Context) error {
	store, err := openStore(ctx, s.app.dbPath, results.Options{})
	s.store = store
	return err
}

// register fixes the experiment and tells what to expect of it.
func (s *sweeper) register(ctx context.Context, k *asked) (record.Experiment, error) {
	k.q.Terms.NoiseSD, k.q.Terms.NoiseSource = experiments.AssumedNoise()
	if s.store != nil {
		k.q.Terms.NoiseSD, k.q.Terms.NoiseSource = experiments.ExpectedNoise(ctx, results.Conductor{Store: s.store}, k.q.Machine.ContentID(), k.q.Model.ContentID(), k.q.Metric)
	}
	e, notes, err := experiments.Register(k.q)
	if err != nil {
		return e, usageError{err, "see `bmoe sweep --help`"}
	}
	for _, n := range append(k.notes, notes...) {
		fmt.Fprintln(s.app.stderr, n)
	}
	return e, nil
}

// conductor waits for the machine to be ours and sets up who does the work.
func (s *sweeper) conductor(ctx context.Context, e *record.Experiment) (*experiments.Conductor, func(), error) {
	terms := experiments.TermsOf(e)
	unlock, err := experiments.Lock(ctx, experiments.LockPath(), lockWait, func(holder string) {
		fmt.Fprintf(s.app.stderr, "waiting for the experiment of process %s to end: two would disturb each other\n", holder)
	})
	if errors.Is(err, experiments.ErrInterrupted) {
		return nil, nil, codedError{errors.New("interrupted before the first run"), exitInterrupted, ""}
	}
	if err != nil {
		return nil, nil, withHint(err, "wait for it to end and try again")
	}
	path, args, err := childCommand()
	if err != nil {
		unlock()
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	bar := newSweepProgress(s.app.stderr)
	c := &experiments.Conductor{
		Store:    results.Conductor{Store: s.store},
		Runner:   &experiments.Child{Path: path, Args: args, Env: probes.ChildEnv(os.Environ()), Timeout: terms.RunTimeout(), MemoryMB: terms.RunMemoryMB},
		Sensor:   experiments.Host{Snapshot: probes.Environment},
		Progress: bar.show,
	}
	if experiments.CanDrop {
		c.Drop = dropModel
	}
	return c, func() { bar.end(); unlock() }, nil
}

func dropModel(path string) error {
	m, err := model.Open(path)
	if err != nil {
		return err
	}
	return experiments.DropFiles(m.Shards)
}

// conclude prints the verdict, or how to go on.
func (s *sweeper) conclude(ctx context.Context, e record.Experiment, v record.Verdict, err error) error {
	if errors.Is(err, experiments.ErrInterrupted) {
		return s.howToGoOn(e)
	}
	if errors.Is(err, experiments.ErrConcluded) {
		fmt.Fprintf(s.app.stderr, "bmoe: %v\n", err)
		err = nil
	}
	if err != nil {
		return err
	}
	runs, err := s.store.Runs(context.WithoutCancel(ctx), results.RunFilter{Experiment: e.ID})
	if err != nil {
		return err
	}
	if s.flags.asJSON {
		err = printJSON(s.app.stdout, sweepDocumentOf(e, v, runs))
	} else {
		err = writeSweep(s.app.stdout, e, v, runs)
		s.writeRecurrence(ctx, e, v)
	}
	if err == nil && s.flags.require {
		err = requireDecided(v)
	}
	return err
}

// writeRecurrence says which findings were made before. It is an extra: a
// ledger that cannot be read has said so already.
func (s *sweeper) writeRecurrence(ctx context.Context, e record.Experiment, v record.Verdict) {
	for _, c := range v.Comparisons {
		text, err := experiments.Recurrence(context.WithoutCancel(ctx), results.Conductor{Store: s.store}, e, c)
		if err == nil && text != "" {
			fmt.Fprintf(s.app.stdout, "\n%s against %s: %s\n", c.Arm, c.Baseline, text)
		}
	}
}

func requireDecided(v record.Verdict) error {
	for _, c := range slices.Concat(v.Comparisons, v.Predictions) {
		if c.Verdict == "undecided" || c.Verdict == "void" {
			return codedError{fmt.Errorf("%s against %s is %s: %s", c.Arm, c.Baseline, c.Verdict, c.Reason), exitUndecided, "more --pairs would be a new experiment"}
		}
	}
	return nil
}

// howToGoOn counts what is stored and prints the command that goes on.
func (s *sweeper) howToGoOn(e record.Experiment) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	runs, err := results.Conductor{Store: s.store}.Runs(ctx, e.ID)
	if err != nil {
		return codedError{errors.Join(errors.New("interrupted"), err), exitInterrupted, ""}
	}
	left := experiments.Remaining(&e, runs)
	err = s.store.AddEvent(ctx, record.Event{Kind: record.EventInterrupt, Subject: e.ID, Why: fmt.Sprintf("%d runs left", left), At: time.Now()})
	if err != nil {
		return codedError{errors.Join(errors.New("interrupted"), err), exitInterrupted, ""}
	}
	return codedError{
		fmt.Errorf("interrupted: %d runs are stored, %d of %d are left", len(runs), left, len(e.Schedule)),
		exitInterrupted, "go on with: bmoe sweep --resume " + experiments.Short(e.ID) + s.app.dbArgument(),
	}
}

// dbArgument is the flag that names this database again, where it needs naming.
func (a *app) dbArgument() string {
	if a.dbPath == defaultDB() {
		return ""
	}
	return " --db " + planner.ShellLine([]string{a.dbPath})
}
