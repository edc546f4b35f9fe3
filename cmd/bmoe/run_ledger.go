package main

import (
	"context"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/engine/cachepolicy"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// ledger is the results database as a run uses it; nil of --no-record.
type ledger struct{ store *results.Store }

// openLedger opens the database before anything is measured: a database that
// cannot be written is said at once, not after the work.
func (r *runner) openLedger(ctx context.Context) error {
	r.ledger = &ledger{}
	if r.flags.noRecord || r.flags.planOnly {
		return nil
	}
	store, err := openStore(ctx, r.app.dbPath, results.Options{})
	if err != nil {
		return err
	}
	r.ledger.store = store
	return nil
}

// openStore opens the database and gives its faults their exit code.
func openStore(ctx context.Context, path string, opts results.Options) (*results.Store, error) {
	store, err := results.Open(ctx, path, opts)
	if err == nil {
		return store, nil
	}
	if ctx.Err() != nil {
		return nil, interrupted(ctx, err)
	}
	if results.IsDataFault(err) {
		return nil, codedError{err, exitData, results.Hint(err)}
	}
	hint := results.Hint(err)
	if hint == "" {
		hint = "give --db a path that can be written, or --no-record"
	}
	return nil, withHint(err, hint)
}

// register stores the facts, the plan and its prediction before the run.
func (l *ledger) register(ctx context.Context, d *document, r *runner, facts []planner.FactLine) error {
	if l.store == nil {
		return nil
	}
	if _, err := l.store.SaveFacts(ctx, d.run.Machine, d.run.Model, r.made.MadeAt, facts); err != nil {
		return err
	}
	_, _, err := l.store.RegisterPlan(ctx, d.run.Machine, d.run.Build, d.run.Model, *r.plan, r.made.MadeAt)
	return err
}

// save stores the run. It has its own time: a Ctrl-C that ended the run must
// not lose it.
func (l *ledger) save(d *document) error {
	if l.store == nil {
		d.run.RunID = d.run.ContentID()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, err := l.store.SaveRun(ctx, d.run, "", record.Slot{}, 0)
	if err != nil {
		return codedError{fmt.Errorf("storing the run: %w", err), exitFailure, results.Hint(err)}
	}
	d.run.RunID = id
	return l.saveCurves(ctx, d)
}

// saveCurves stores what the run's routing says about hits at every cache size,
// for the next plan of this model.
func (l *ledger) saveCurves(ctx context.Context, d *document) error {
	if d.routing == nil {
		return nil
	}
	r, _ := analysis.NewRouting(d.routing)
	for _, policy := range []string{cachepolicy.LRU, cachepolicy.A2D} {
		h, ok := analysis.HitHistogram(r, policy)
		if !ok {
			continue
		}
		h.ModelID, h.RunID = d.run.Model.ID, d.run.RunID
		if _, err := l.store.SaveHistogram(ctx, h); err != nil {
			return codedError{fmt.Errorf("storing the run's hit curve: %w", err), exitFailure, results.Hint(err)}
		}
	}
	return nil
}

func (l *ledger) close() {
	if l.store != nil {
		_ = l.store.Close()
	}
}
