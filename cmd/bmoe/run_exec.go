package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bmoe/bmoe/engine"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/results/record"
)

// runner does one `bmoe run`.
type runner struct {
	app    *app
	flags  *runFlags
	cfg    config.Config
	pins   planner.Pins
	prompt string
	plan   *planner.Plan
	made   *record.Prediction
	ledger *ledger
	csv    *os.File // of --csv, made before the run: a path that cannot be written costs no run
}

// run plans if asked, runs, stores and tells.
func (r *runner) run(ctx context.Context) error {
	engine.Verbose(r.flags.verbose)
	doc := newDocument(ctx, r)
	if err := doc.identify(r.cfg.Model); err != nil {
		return err
	}
	if err := r.openLedger(ctx); err != nil {
		return err
	}
	defer r.ledger.close()
	if err := r.openCSV(); err != nil {
		return err
	}
	if r.flags.auto {
		stop, err := r.planAhead(ctx, doc)
		if stop || err != nil {
			return interrupted(ctx, err)
		}
	}
	if r.flags.repeat > 1 {
		return r.trial(ctx, doc)
	}
	return interrupted(ctx, r.once(ctx, doc))
}

// planAhead measures, plans, prints the plan and stores its prediction before
// anything is run. stop means that the plan was all that was asked for.
func (r *runner) planAhead(ctx context.Context, doc *document) (stop bool, err error) {
	profile, plan, err := r.app.probeAndPlan(ctx, r.cfg, r.pins, r.flags.probe)
	if err != nil {
		return false, err
	}
	r.plan = &plan
	r.cfg = plan.Config
	if r.flags.planOnly {
		err := writePlan(r.app.stdout, &plan, r.flags.asJSON, r.flags.explain)
		if err == nil && plan.Declined {
			err = noPlanFits(&plan)
		}
		return true, err
	}
	if !r.flags.asJSON {
		if err := planner.WriteText(r.app.stderr, &plan, r.flags.explain); err != nil {
			return false, err
		}
	}
	if plan.Declined && r.flags.requireFit {
		return false, noPlanFits(&plan)
	}
	if plan.Declined {
		fmt.Fprintln(r.app.stderr, "bmoe: no plan fits: running the model mapped, holding nothing")
	}
	r.made = &record.Prediction{Prediction: plan.Prediction, MadeAt: time.Now().UTC()}
	return false, r.ledger.register(ctx, doc, r, profile.Facts())
}

func (r *runner) openCSV() (err error) {
	if r.flags.csv == "" || r.flags.planOnly {
		return nil
	}
	if r.csv, err = openOutput(r.flags.csv); err != nil {
		return usageError{fmt.Errorf("--csv: %w", err), "give --csv a file in a folder that can be written to"}
	}
	return nil
}

// once opens the engine, generates and stores the run, whatever came of it.
func (r *runner) once(ctx context.Context, doc *document) (err error) {
	doc.start(ctx, r)
	s, err := engine.Open(ctx, r.cfg)
	if err != nil {
		return r.finish(ctx, doc, openError(err))
	}
	defer func() { err = errors.Join(err, s.Close()) }() // a trace may have found no room
	s.CommitAhead(holdable)
	doc.opened(s)
	talk := newTalk(r, s)
	err = talk.turns(ctx, doc)
	doc.measured(s)
	return r.finish(ctx, doc, err)
}

// holdable is how many bytes this process may still hold; none where that is
// not known.
func holdable() int64 { return probes.Local().Memory().Holdable.Or(0) }

// finish stores the run and prints what is left to print. What could not be
// stored is printed all the same: it was measured.
func (r *runner) finish(ctx context.Context, doc *document, runErr error) error {
	doc.finish(ctx, runErr)
	saveErr := r.ledger.save(doc)
	if runErr != nil && ctx.Err() == nil && !r.flags.asJSON {
		if len(doc.run.Tokens) > 0 && saveErr == nil {
			r.nameRun(doc)
		}
		return errors.Join(runErr, saveErr)
	}
	var csvErr error
	if r.csv != nil {
		csvErr = writeTokenCSV(r.csv, &doc.run)
	}
	if r.flags.asJSON {
		return errors.Join(printJSON(r.app.stdout, doc.run), saveErr, csvErr, runErr)
	}
	writeSummary(r.app.stderr, &doc.run)
	if saveErr == nil {
		r.nameRun(doc)
	}
	return errors.Join(saveErr, csvErr, runErr)
}

// nameRun says under which name the run is stored.
func (r *runner) nameRun(doc *document) {
	if r.ledger.store != nil {
		fmt.Fprintf(r.app.stderr, "run       %.12s (`bmoe show %.12s`)\n", doc.run.RunID, doc.run.RunID)
	}
}
