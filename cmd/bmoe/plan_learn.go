package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

func init() {
	learnFacts = func(a *app) func(context.Context, *model.Model, *planner.Profile) error {
		return func(ctx context.Context, m *model.Model, p *planner.Profile) error { return learn(ctx, a.dbPath, m, p) }
	}
}

const (
	learnRuns   = 20 // newest runs a plan learns from
	learnTokens = 16 // decoded tokens from which a run's rate counts
	curvePoints = 64 // of a hit curve, at most
)

// learn reads what the ledger knows about this model, and about this machine
// and build with it. A ledger that does not exist teaches nothing.
func learn(ctx context.Context, db string, m *model.Model, p *planner.Profile) error {
	store, err := results.Open(ctx, db, results.Options{ReadOnly: true})
	if errors.Is(err, results.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer store.Close()
	id, err := m.Hash()
	if err != nil {
		return err
	}
	runs, err := store.Runs(ctx, results.RunFilter{Model: id, State: record.StateDone, Limit: 10 * learnRuns, Samples: true})
	if err != nil {
		return err
	}
	learnHits(runs, p)
	learnCosts(runs, probes.Machine(ctx), p)
	return learnCurves(ctx, store, id, p)
}

// learnHits fits the coefficient to this model's runs, on whatever machine:
// routing does not depend on it.
func learnHits(runs []record.StoredRun, p *planner.Profile) {
	policy := commonPolicy(runs)
	points, ids := analysis.RunHits(runs, policy)
	fit, err := analysis.FitHits(points, nil, fitLevel)
	if err != nil {
		return // too few runs to fit
	}
	f := planner.HitFit{Shape: planner.ShapeLine, K: fit.Line.Value, Lo: fit.Line.Value, Hi: fit.Line.Value, FromF: fit.Line.BandLo, ToF: fit.Line.BandHi, Policy: policy}
	if fit.Interval.Level > 0 {
		f.Lo, f.Hi = fit.Interval.Lo, fit.Interval.Hi
	}
	for _, h := range fit.Rivals {
		if h.Name == analysis.HypothesisSaturating && h.RMSE < fit.Line.RMSE {
			// The line's interval, as a share of its coefficient, stands in for
			// the rival's, which has none.
			f.Shape, f.Lo, f.Hi = planner.ShapeSaturating, h.Value*f.Lo/f.K, h.Value*f.Hi/f.K
			f.K = h.Value
		}
	}
	p.Hits.Fit = planner.DerivedFact(f, fmt.Sprintf("fitted to %d earlier runs of this model", len(ids)))
}

// learnCosts hands the planner the runs of this build on this machine.
func learnCosts(runs []record.StoredRun, machine record.Machine, p *planner.Profile) {
	build := probes.Build()
	var seen []planner.Observation
	for i := range runs {
		r := &runs[i].Run
		if r.Machine.ContentID() != machine.ContentID() || r.Build.Commit != build.Commit || r.Build.Dirty != build.Dirty || r.Config.Threads != 0 || r.Measured.DecodeTokens < learnTokens || len(runs[i].Void) > 0 {
			continue
		}
		seen = append(seen, observation(r))
	}
	if len(seen) > learnRuns {
		seen = seen[len(seen)-learnRuns:]
	}
	p.Observe(seen)
}

func observation(r *record.Run) planner.Observation {
	o := planner.Observation{
		Config: r.Config, DecodeSPerToken: r.Measured.DecodeSPerToken,
		PrefillTokensPerS: r.Measured.PrefillTokensPerS, PromptTokens: float64(r.Measured.PromptTokens),
		CacheRefused: r.Stats.CachePinRefusedBytes, DenseRefused: r.Stats.DensePinRefusedBytes,
	}
	if r.Model.TokenCycle > 0 {
		o.ByteHitRate = 1 - r.Measured.BytesPerToken/float64(r.Model.TokenCycle)
	}
	var manage int64
	for _, ns := range r.TokenManageNS {
		manage += ns
	}
	if r.Stats.DecodeLookups > 0 {
		o.ManageSPerLookup = float64(manage) / 1e9 / float64(r.Stats.DecodeLookups)
	}
	return o
}

// learnCurves turns recorded routing into hit curves, the newest of a policy.
func learnCurves(ctx context.Context, store *results.Store, model string, p *planner.Profile) error {
	list, err := store.Histograms(ctx, model)
	if err != nil {
		return err
	}
	byPolicy := map[string]planner.HitCurve{}
	for i := range list {
		if list[i].Phase == "decode" && list[i].Lookups > 0 {
			byPolicy[list[i].Policy] = hitCurve(&list[i])
		}
	}
	if len(byPolicy) == 0 {
		return nil
	}
	var curves []planner.HitCurve
	for _, policy := range []string{"a2d", "lru"} {
		if c, ok := byPolicy[policy]; ok {
			curves = append(curves, c)
		}
	}
	p.Hits.Curves = planner.MeasuredFact(curves, 0, "recorded routing of this model")
	return nil
}

// hitCurve sums a histogram of distances into the share of hits by size.
func hitCurve(h *record.Histogram) planner.HitCurve {
	c := planner.HitCurve{Policy: h.Policy}
	step := max(1, len(h.Bins)/curvePoints)
	var hits int64
	bins := slices.Clone(h.Bins)
	slices.SortFunc(bins, func(a, b record.HistogramBin) int { return int(min(1, max(-1, a.Bytes-b.Bytes))) })
	for i, b := range bins {
		hits += b.Count
		if i%step == step-1 || i == len(bins)-1 {
			c.Points = append(c.Points, planner.HitPoint{Bytes: b.Bytes, Hit: float64(hits) / float64(h.Lookups)})
		}
	}
	return c
}
