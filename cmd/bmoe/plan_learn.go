package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	curveLevel  = 0.9
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
	if err != nil && !errors.Is(err, results.ErrNotFound) { // a new model has no runs
		return err
	}
	if err := learnHits(ctx, store, runs, m, p); err != nil {
		return err
	}
	learnCosts(runs, probes.Machine(ctx), p)
	return learnCurves(ctx, store, id, m, p)
}

// learnHits fits the coefficient to this model's runs, on whatever machine:
// routing does not depend on it. Without enough of them it is fitted to the runs
// of all models that have as many experts and use as many.
func learnHits(ctx context.Context, store *results.Store, runs []record.StoredRun, m *model.Model, p *planner.Profile) error {
	if learnFit(runs, p, "this model") {
		return nil
	}
	all, err := store.Runs(ctx, results.RunFilter{State: record.StateDone, Limit: 50 * learnRuns})
	if err != nil {
		return err
	}
	class := slices.DeleteFunc(all, func(r record.StoredRun) bool {
		return r.Run.Model.Experts != m.Experts || r.Run.Model.ExpertsUsed != m.ExpertsUsed
	})
	learnFit(class, p, fmt.Sprintf("models of %d experts, %d used", m.Experts, m.ExpertsUsed))
	return nil
}

// learnFit fits the runs, if they are enough.
func learnFit(runs []record.StoredRun, p *planner.Profile, of string) bool {
	policy := commonPolicy(runs)
	points, ids := analysis.RunHits(runs, policy)
	fit, err := analysis.FitHits(points, nil, fitLevel)
	if err != nil {
		return false // too few runs to fit
	}
	machines := map[string]bool{}
	for i := range runs {
		if slices.Contains(ids, runs[i].Run.RunID) {
			machines[runs[i].Run.Machine.ID] = true
		}
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
	p.Hits.Fit = planner.MeasuredFact(f, 0, fmt.Sprintf("from %s of %s on %s", analysis.Count(len(ids), "run"), of, analysis.Count(len(machines), "machine")))
	return true
}

// learnCosts hands the planner the runs of this build on this machine.
func learnCosts(runs []record.StoredRun, machine record.Machine, p *planner.Profile) {
	build := probes.Build()
	var seen []planner.Observation
	for i := range runs {
		r := &runs[i].Run
		if r.Machine.ContentID() != machine.ContentID() || r.Build.Commit != build.Commit || r.Build.Dirty != build.Dirty || threadsPinned(r) || r.Measured.DecodeTokens < learnTokens || len(runs[i].Void) > 0 {
			continue
		}
		seen = append(seen, observation(r))
	}
	if len(seen) > learnRuns {
		seen = seen[len(seen)-learnRuns:]
	}
	p.Observe(seen)
}

// threadsPinned reports whether a run computed with a number of threads that was
// typed, which says nothing of the number a plan leaves alone.
func threadsPinned(r *record.Run) bool {
	text, ok := r.Pins["threads"]
	return ok && text != "0"
}

func observation(r *record.Run) planner.Observation {
	o := planner.Observation{
		Config: r.Config, DecodeSPerToken: r.Measured.DecodeSPerToken,
		PrefillTokensPerS: r.Measured.PrefillTokensPerS, PromptTokens: float64(r.Measured.PromptTokens),
		Tokens:       r.Measured.DecodeTokens,
		CacheRefused: r.Stats.CachePinRefusedBytes, DenseRefused: r.Stats.DensePinRefusedBytes,
	}
	if r.Model.TokenCycle > 0 {
		o.ByteHitRate = 1 - r.Measured.BytesPerToken/float64(r.Model.TokenCycle)
	}
	if n := len(r.TokenNS); n > 0 && len(r.TokenManageNS) == n && len(r.TokenWaitNS) == n {
		var manage, wait int64
		for i := range n {
			manage, wait = manage+r.TokenManageNS[i], wait+r.TokenWaitNS[i]
		}
		o.Split = true
		o.ManageSPerToken, o.WaitSPerToken = float64(manage)/1e9/float64(n), float64(wait)/1e9/float64(n)
		if r.Stats.DecodeLookups > 0 {
			o.ManageSPerLookup = float64(manage) / 1e9 / float64(r.Stats.DecodeLookups)
		}
	}
	if c := &r.Config; c.PrefillDevice != "" && r.Stats.PrefillLayers > 0 {
		o.Device, o.DeviceFailed = c.PrefillDevice, r.Stats.BytesToDevice == 0
		o.DeviceWhy = strings.Join(r.Warnings, "; ")
	}
	return o
}

// learnCurves puts the curves of this model's recorded routings together, a
// policy at a time.
func learnCurves(ctx context.Context, store *results.Store, id string, m *model.Model, p *planner.Profile) error {
	list, err := store.Histograms(ctx, id)
	if err != nil && !errors.Is(err, results.ErrNotFound) {
		return err
	}
	byPolicy := map[string][]record.Histogram{}
	most := 0
	for i := range list {
		if h := &list[i]; h.Phase == "decode" && h.Lookups > 0 {
			byPolicy[h.Policy] = append(byPolicy[h.Policy], *h)
			most = max(most, len(byPolicy[h.Policy]))
		}
	}
	layers := map[int]bool{}
	for i := range m.ExpertTensors {
		layers[m.ExpertTensors[i].Layer] = true
	}
	var curves []planner.HitCurve
	for _, policy := range slices.Sorted(maps.Keys(byPolicy)) {
		c := planner.HitCurve{Policy: policy}
		for _, q := range analysis.PoolCurves(byPolicy[policy], float64(len(layers)*m.ExpertsUsed), curvePoints, curveLevel) {
			c.Points = append(c.Points, planner.HitPoint{Bytes: q.Bytes, Hit: q.Hit, Half: q.Half})
		}
		curves = append(curves, c)
	}
	if len(curves) > 0 {
		p.Hits.Curves = planner.MeasuredFact(curves, 0, "from "+analysis.Count(most, "recorded routing"))
	}
	return nil
}
