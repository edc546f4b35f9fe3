package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// dryRun prints what would be done. It stores nothing: a ledger that exists is
// only read.
func (s *sweeper) dryRun(ctx context.Context, k *asked) error {
	if _, err := os.Stat(s.app.dbPath); err == nil {
		store, err := openStore(ctx, s.app.dbPath, results.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		defer store.Close()
		s.store = store
	}
	e, err := s.register(ctx, k)
	if err != nil {
		return err
	}
	each, known := s.expectedRun(ctx, &e)
	if s.flags.asJSON {
		d := sweepDocumentOf(e, record.Verdict{}, nil)
		d.Schedule = e.Schedule
		d.CostS = each * float64(len(e.Schedule))
		return printJSON(s.app.stdout, d)
	}
	writeSchedule(s.app.stdout, &e)
	if !known {
		fmt.Fprintf(s.app.stdout, "%d runs; how long one takes is not known until the first\n", len(e.Schedule))
		return nil
	}
	total := time.Duration(each * float64(len(e.Schedule)) * float64(time.Second))
	fmt.Fprintf(s.app.stdout, "%d runs of about %.1f s: %s\n", len(e.Schedule), each, clock(total))
	return nil
}

// expectedRun is how many seconds one run takes: as earlier ones did, or from
// what was predicted, which leaves the load out.
func (s *sweeper) expectedRun(ctx context.Context, e *record.Experiment) (float64, bool) {
	if s.store != nil {
		if each, ok := experiments.ExpectedSeconds(ctx, results.Conductor{Store: s.store}, e.Machine.ContentID(), e.Model.ContentID()); ok {
			return each, true
		}
	}
	var sum float64
	for _, a := range e.Arms {
		if a.Prediction == nil || !a.Prediction.DecodeSPerToken.Known {
			return 0, false
		}
		sum += a.Prediction.DecodeSPerToken.Point * float64(a.Config.Predict)
	}
	return sum / float64(len(e.Arms)), true
}

func writeSchedule(w io.Writer, e *record.Experiment) {
	fmt.Fprintf(w, "%s\nrefuted if %s\n%s, seed %d, %d pairs, margin %.3g %%\n\n", e.Question, e.Falsifier, e.Design, e.Seed, e.Pairs, 100*e.Margin)
	block := experiments.WarmupBlock - 1
	for _, slot := range e.Schedule {
		if slot.Block != block {
			if block >= experiments.WarmupBlock {
				fmt.Fprintln(w)
			}
			block = slot.Block
			name := fmt.Sprintf("block %d", block+1)
			if block == experiments.WarmupBlock {
				name = "warm-up"
			}
			fmt.Fprintf(w, "%-9s", name)
		}
		fmt.Fprintf(w, "  %s", slot.Arm)
	}
	fmt.Fprint(w, "\n\n")
	for _, a := range e.Arms {
		if p := a.Prediction; p != nil && p.DecodeSPerToken.Known {
			fmt.Fprintf(w, "predicted for %s: %.4g s/token (%.4g to %.4g)\n", a.Name, p.DecodeSPerToken.Point, p.DecodeSPerToken.Lo, p.DecodeSPerToken.Hi)
		}
	}
}
