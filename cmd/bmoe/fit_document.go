package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// fitDoc is the document of fit --json.
type fitDoc struct {
	Schema     string          `json:"schema"`
	Source     string          `json:"source"`
	Policy     string          `json:"policy"`
	Points     int             `json:"points"`
	Clusters   int             `json:"clusters"`
	Hypotheses []fitHypothesis `json:"hypotheses"`
	Ratio      *float64        `json:"median_ratio"`
	Interval   fitInterval     `json:"interval"`
	Verdict    string          `json:"verdict"` // on the line's shape
	Reason     string          `json:"reason"`
	Decode     *fitScore       `json:"predictions_decode,omitempty"`
	Hits       *hitScore       `json:"predictions_hit_rate,omitempty"`
	FitID      string          `json:"fit_id,omitempty"`
	Curves     []string        `json:"curves_stored,omitempty"` // policies
	Groups     []fitDoc        `json:"groups,omitempty"`
}

type fitHypothesis struct {
	Name    string             `json:"name"`
	Params  map[string]float64 `json:"params"`
	RMSE    float64            `json:"rmse"`
	LeftOut *float64           `json:"left_out_rmse"`
	Band    [2]float64         `json:"band"`
}

type fitInterval struct {
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
	Level  float64 `json:"level"`
	Method string  `json:"method"`
	Note   string  `json:"note,omitempty"`
}

// fitScore is how the stored predictions of s/token did.
type fitScore struct {
	N              int        `json:"n"`
	Bias           float64    `json:"bias"` // median ln(measured/predicted)
	MedianAbs      float64    `json:"median_abs"`
	Stated         int        `json:"intervals"`
	Covered        int        `json:"covered"`
	Coverage95     [2]float64 `json:"coverage_ci"`
	Winkler        float64    `json:"interval_score"`
	BaselineN      int        `json:"baseline_n"`
	BaselineMedian float64    `json:"baseline_median_abs"` // the last measured value
}

type hitScore struct {
	N         int     `json:"n"`
	MedianAbs float64 `json:"median_abs"` // of the hit rate itself
}

// finite is nil for what JSON cannot say.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func fitDocument(in fitInput) (*fitDoc, *analysis.HitFit, error) {
	fit, err := analysis.FitHits(in.points, in.curve, fitLevel)
	if err != nil {
		return nil, nil, err
	}
	d := &fitDoc{
		Schema: "bmoe.fit/1", Source: in.source, Policy: in.policy, Points: fit.Points, Clusters: fit.Clusters,
		Ratio: finite(fit.Ratio), Interval: fitInterval(fit.Interval), Verdict: fit.Shape.Verdict, Reason: fit.Shape.Reason,
	}
	for _, h := range fit.Hypotheses() {
		d.Hypotheses = append(d.Hypotheses, fitHypothesis{Name: h.Name, Params: params(h), RMSE: h.RMSE, LeftOut: finite(h.LeftOut), Band: [2]float64{h.BandLo, h.BandHi}})
	}
	if c := analysis.Calibrate(analysis.ScoredDecode(in.runs), 0.9, fitLevel); c.N > 0 {
		d.Decode = &fitScore{c.N, c.Bias, c.MedianAbs, c.Stated, c.Covered, [2]float64{c.CoverageCI.Lo, c.CoverageCI.Hi}, c.Winkler, c.Baseline.N, c.Baseline.MedianAbs}
	}
	if e := analysis.HitErrors(in.runs); len(e) > 0 {
		for i := range e {
			e[i] = math.Abs(e[i])
		}
		d.Hits = &hitScore{len(e), analysis.Median(e)}
	}
	return d, fit, nil
}

func params(h analysis.Hypothesis) map[string]float64 {
	if !h.Parameter {
		return map[string]float64{}
	}
	return map[string]float64{h.Param: h.Value}
}

// fitClasses fits each class of models of the same expert count and width. A
// class too small to fit is left out.
func fitClasses(in fitInput) []fitDoc {
	byClass := map[string][]record.StoredRun{}
	var order []string
	for _, r := range in.runs {
		c := fmt.Sprintf("%d experts, %d used", r.Run.Model.Experts, r.Run.Model.ExpertsUsed)
		if byClass[c] == nil {
			order = append(order, c)
		}
		byClass[c] = append(byClass[c], r)
	}
	slices.Sort(order)
	var out []fitDoc
	for _, c := range order {
		part := fitInput{source: c, policy: in.policy, runs: byClass[c]}
		part.points, part.ids = analysis.RunHits(part.runs, in.policy)
		if d, _, err := fitDocument(part); err == nil {
			out = append(out, *d)
		}
	}
	return out
}

func fitRecord(in fitInput, fit *analysis.HitFit) record.Fit {
	ids := slices.Sorted(slices.Values(in.ids))
	f := record.Fit{
		Method: fitMethod, MachineID: in.machine, ModelID: in.model.ID, Inputs: ids, Points: fit.Points, Verdict: fit.Shape.Verdict,
		Extra: map[string]any{
			"policy": in.policy, "clusters": fit.Clusters, "reason": fit.Shape.Reason,
			"lo": fit.Interval.Lo, "hi": fit.Interval.Hi, "level": fit.Interval.Level, "interval_method": fit.Interval.Method,
		},
	}
	for _, h := range fit.Hypotheses() {
		f.Hypotheses = append(f.Hypotheses, record.Hypothesis{Name: h.Name, Params: params(h), RMSE: h.RMSE, Band: [2]float64{h.BandLo, h.BandHi}})
	}
	return f
}

// fileModel is the model in a file of that name; false where there is none.
func fileModel(name string) (m record.Model, ok bool, err error) {
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	f, err := model.Open(name)
	if err != nil {
		return m, false, usageError{err, "give -m a GGUF file, or a model's id or name"}
	}
	m, err = modelRecord(f)
	return m, err == nil, err
}

// ledgerModel finds the model that text names among those that ran: a file, an
// id or its beginning, or a name.
func ledgerModel(ctx context.Context, s *results.Store, text string) (record.Model, error) {
	want := text
	file, ok, err := fileModel(text)
	switch {
	case err != nil:
		return record.Model{}, err
	case ok:
		want = file.ID
	}
	runs, err := s.Runs(ctx, results.RunFilter{})
	if err != nil {
		return record.Model{}, ledgerFault(err)
	}
	found := map[string]record.Model{}
	for i := range runs {
		if m := runs[i].Run.Model; strings.HasPrefix(m.ID, want) || m.Name == text {
			found[m.ID] = m
		}
	}
	switch len(found) {
	case 0:
		return record.Model{}, withHint(fmt.Errorf("no run of model %s is stored", text), "`bmoe run -m MODEL` stores one")
	case 1:
		for _, m := range found {
			return m, nil
		}
	}
	return record.Model{}, usageError{fmt.Errorf("-m %s names %d models", text, len(found)), "give more of the id; `bmoe db list` shows them"}
}

func (d *fitDoc) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, policy %s: %d points, %d cluster(s)\n\n", d.Source, d.Policy, d.Points, d.Clusters)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "hypothesis\tparameter\tRMSE\tRMSE left out\tband of f")
	for _, h := range d.Hypotheses {
		param := "-"
		for k, v := range h.Params {
			param = fmt.Sprintf("%s = %.2f", k, v)
		}
		out := "-"
		if h.LeftOut != nil {
			out = fmt.Sprintf("%.3f", *h.LeftOut)
		}
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%s\t%.2f to %.2f\n", h.Name, param, h.RMSE, out, h.Band[0], h.Band[1])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if d.Interval.Level > 0 {
		fmt.Fprintf(w, "\nk of the line: %.2f to %.2f at %s (%s)", d.Interval.Lo, d.Interval.Hi, analysis.Level(d.Interval.Level), d.Interval.Method)
	} else {
		fmt.Fprint(w, "\nk of the line: no interval")
	}
	if d.Interval.Note != "" {
		fmt.Fprintf(w, "; %s", d.Interval.Note)
	}
	if d.Ratio != nil {
		fmt.Fprintf(w, "\nmedian h/f below the clamp: %.2f", *d.Ratio)
	}
	fmt.Fprintf(w, "\nthe line is %s: %s\n", d.Verdict, d.Reason)
	d.printScores(w)
	if len(d.Curves) > 0 {
		fmt.Fprintf(w, "hit curves stored for the next plan: %s\n", strings.Join(d.Curves, ", "))
	}
	for i := range d.Groups {
		fmt.Fprintln(w)
		if err := d.Groups[i].print(w); err != nil {
			return err
		}
	}
	return nil
}

func (d *fitDoc) printScores(w io.Writer) {
	if s := d.Decode; s != nil {
		fmt.Fprintf(w, "predicted s/token so far: %d runs, bias %+.1f %%, median error %.1f %%, %d of %d intervals held", s.N, 100*math.Expm1(s.Bias), 100*math.Expm1(s.MedianAbs), s.Covered, s.Stated)
		if s.BaselineN > 0 {
			fmt.Fprintf(w, "; the last measured value instead: %.1f %% (%d runs)", 100*math.Expm1(s.BaselineMedian), s.BaselineN)
		}
		fmt.Fprintln(w)
	}
	if s := d.Hits; s != nil {
		fmt.Fprintf(w, "predicted hit rate so far: %d runs, median error %.3f\n", s.N, s.MedianAbs)
	}
}
