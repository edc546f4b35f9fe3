package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/results"
)

// trial runs the plan --repeat times, each in a process of its own, and judges
// the prediction that was registered before the first of them.
func (r *runner) trial(ctx context.Context, doc *document) error {
	if r.ledger.store == nil {
		return usageError{errors.New("--repeat with --no-record: a prediction is judged from what is stored"), "leave one of them out"}
	}
	plan := *r.plan
	plan.Config = r.cfg
	plan.Config.Prompt, plan.Config.File = r.prompt, ""
	q := experiments.PlanTrial(plan, *r.made, r.flags.repeat)
	q.Machine, q.Build, q.Model, q.At = doc.run.Machine, doc.run.Build, doc.run.Model, time.Now().UTC()
	e, notes, err := experiments.Register(q)
	if err != nil {
		return usageError{err, "see `bmoe run --help`"}
	}
	for _, n := range notes {
		fmt.Fprintln(r.app.stderr, n)
	}
	s := &sweeper{app: r.app, flags: &sweepFlags{asJSON: r.flags.asJSON}, store: r.ledger.store}
	c, unlock, err := s.conductor(ctx, &e)
	if err != nil {
		return err
	}
	defer unlock()
	c.Store = results.Conductor{Store: r.ledger.store}
	v, err := c.Start(ctx, e)
	return s.conclude(ctx, e, v, err)
}
