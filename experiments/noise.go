package experiments

import (
	"context"
	"fmt"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// assumedNoise is the scatter of paired log ratios taken when this machine has
// never been measured against itself.
const assumedNoise = 0.03

// AssumedNoise is the scatter taken where there is no ledger to ask.
func AssumedNoise() (sd float64, source string) {
	return assumedNoise, "assumed; `bmoe sweep --aa` measures it"
}

// ExpectedNoise is the scatter of like runs: from this machine's latest A/A
// experiment on the model and metric, or assumed.
func ExpectedNoise(ctx context.Context, store Store, machine, model, metric string) (sd float64, source string) {
	all, err := store.Experiments(ctx)
	if err != nil {
		return assumedNoise, "assumed; the ledger could not be read"
	}
	var latest *record.Experiment
	for i := range all {
		e := &all[i]
		same := e.Kind == KindAA && e.Metric == metric && e.Machine.ContentID() == machine && e.Model.ContentID() == model
		if same && (latest == nil || e.RegisteredAt.After(latest.RegisteredAt)) {
			latest = e
		}
	}
	if latest == nil {
		return assumedNoise, "assumed; `bmoe sweep --aa` measures it"
	}
	runs, err := store.Runs(ctx, latest.ID)
	if err != nil {
		return assumedNoise, "assumed; the A/A runs could not be read"
	}
	f := find(latest, TermsOf(latest), contrasts(latest, TermsOf(latest))[0], completeBlocks(latest, runs), 1)
	if len(f.d) < 4 {
		return assumedNoise, "assumed; the A/A experiment has fewer than 4 pairs"
	}
	return analysis.PairNoise(f.d, f.armFirst), fmt.Sprintf("measured by the A/A experiment %s", Short(latest.ID))
}

// ExpectedSeconds is how long one run took in earlier experiments on this
// machine and model, and false when none has been run.
func ExpectedSeconds(ctx context.Context, store Store, machine, model string) (float64, bool) {
	all, err := store.Experiments(ctx)
	if err != nil {
		return 0, false
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Machine.ContentID() != machine || all[i].Model.ContentID() != model {
			continue
		}
		runs, err := store.Runs(ctx, all[i].ID)
		if err != nil {
			continue
		}
		var x []float64
		for _, r := range runs {
			if r.Run.State == record.StateDone {
				x = append(x, r.Run.FinishedAt.Sub(r.Run.StartedAt).Seconds())
			}
		}
		if len(x) > 0 {
			return analysis.Median(x), true
		}
	}
	return 0, false
}
