package results

import (
	"context"

	"github.com/bmoe/bmoe/results/record"
)

// Conductor is a ledger as the experiment harness asks for one: it computes
// the ids itself, and of an experiment it wants every run that counts.
type Conductor struct{ *Store }

// SaveExperiment registers an experiment before its first run.
func (c Conductor) SaveExperiment(ctx context.Context, e record.Experiment) error {
	_, err := c.Store.SaveExperiment(ctx, e)
	return err
}

// SaveRun stores a run of an experiment.
func (c Conductor) SaveRun(ctx context.Context, run record.Run, experimentID string, slot record.Slot, attempt int) error {
	_, err := c.Store.SaveRun(ctx, run, experimentID, slot, attempt)
	return err
}

// Runs returns the runs of an experiment that were not declared void.
func (c Conductor) Runs(ctx context.Context, experimentID string) ([]record.StoredRun, error) {
	return c.Store.Runs(ctx, RunFilter{Experiment: experimentID, Samples: true, Text: true})
}

// SaveVerdict stores what was found.
func (c Conductor) SaveVerdict(ctx context.Context, v record.Verdict) error {
	_, err := c.Store.SaveVerdict(ctx, v)
	return err
}
