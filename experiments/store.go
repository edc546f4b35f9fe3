package experiments

import (
	"context"

	"github.com/bmoe/bmoe/results/record"
)

// Store is the ledger as the conductor needs it. An acknowledged SaveRun must
// survive the process and the power.
type Store interface {
	SaveExperiment(ctx context.Context, e record.Experiment) error
	Experiment(ctx context.Context, id string) (record.Experiment, error)
	Experiments(ctx context.Context) ([]record.Experiment, error)
	SaveRun(ctx context.Context, run record.Run, experimentID string, slot record.Slot, attempt int) error
	Runs(ctx context.Context, experimentID string) ([]record.StoredRun, error)
	SaveVerdict(ctx context.Context, v record.Verdict) error
	Verdicts(ctx context.Context, experimentID string) ([]record.Verdict, error)
	Void(ctx context.Context, id, why string) error
}

// Runner performs one run. Whatever becomes of it is described by the record:
// there is no error, because a run that dies is a result.
type Runner interface {
	Run(ctx context.Context, job Job) record.Run
}

// Job is what a Runner is asked to do.
type Job struct {
	ExperimentID string
	Slot         record.Slot
	Arm          record.Arm
	Attempt      int
}

// Sensor reads the conditions a run starts under.
type Sensor interface {
	// Environment is a snapshot; modelPath lets it say how much of the model
	// the page cache holds.
	Environment(ctx context.Context, modelPath string) record.Environment
	// Busy is the share of all processors in use right now, 0 to 1, and false
	// where that cannot be read.
	Busy(ctx context.Context) (float64, bool)
}
