package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/engine/cachepolicy"
	"github.com/bmoe/bmoe/results/record"
)

// hitsSection fits the hit rate for every model and cache policy that has
// enough runs.
func (d *Data) hitsSection() (Section, error) {
	s := Section{ID: "hits", Title: "Hit rate against cache size"}
	t := Table{Columns: columns("model", "policy", "#points", "hypothesis", "#parameter", "#RMSE", "#RMSE left out", "#from f", "#to f", "line's shape")}
	var figures []Block
	points := 0
	for _, m := range d.index().models {
		for _, policy := range cachepolicy.Names() {
			list := hitPoints(d.index().ofModel[m.ID], policy)
			fit, err := analysis.FitHits(list, d.measuredCurve(m, policy), reportLevel)
			if err != nil || !severalSizes(list) {
				continue // nothing to fit
			}
			points += fit.Points
			name := orWord(m.Name, short(m.ID))
			for _, h := range fit.Hypotheses() {
				t.Rows = append(t.Rows, []string{name, policy, strconv.Itoa(fit.Points), h.Name, parameter(h), digits(h.RMSE, 2), leftOut(h), digits(h.BandLo, 2), digits(h.BandHi, 2), fit.Shape.Verdict})
			}
			f, err := HitsFigure("hits-"+short(m.ID)+"-"+policy, name+", "+policy, list, fit)
			if err != nil {
				return s, err
			}
			figures = append(figures, Text(fmt.Sprintf("%s, %s: the line is %s: %s.", name, policy, fit.Shape.Verdict, fit.Shape.Reason)), f)
		}
	}
	if len(t.Rows) == 0 {
		s.Blocks = append(s.Blocks, Text("No model has streamed runs at two cache sizes or more: `bmoe sweep -m MODEL --lever cache-mb` makes them."))
		return s, nil
	}
	from, to := span(d.index().runs)
	t.Caption = fmt.Sprintf("Fits of the hit rate h to the share f of routed experts held: the clamped line min(1, k f), the raw line, 1 - exp(-a f), the measured curve. %s; %s; n = %s.",
		settingsOf(d.index().runs), dates(from, to), analysis.Count(points, "point"))
	s.Blocks = append(append(s.Blocks, t), figures...)
	return s, nil
}

// severalSizes reports whether points differ in what was held: any curve fits
// one size.
func severalSizes(list []analysis.HitPoint) bool {
	return slices.ContainsFunc(list, func(p analysis.HitPoint) bool { return p.F != list[0].F })
}

// hitPoints are the runs of a policy whose hit rate a fit may use.
func hitPoints(runs []*record.StoredRun, policy string) (out []analysis.HitPoint) {
	for _, r := range runs {
		if r.Run.Config.CachePolicy != policy {
			continue
		}
		if p, ok := analysis.StreamedHit(r); ok {
			out = append(out, p)
		}
	}
	return out
}

func parameter(h analysis.Hypothesis) string {
	if !h.Parameter {
		return none
	}
	return fmt.Sprintf("%s = %s", h.Param, digits(h.Value, 3))
}

func leftOut(h analysis.Hypothesis) string {
	if h.LeftOut != h.LeftOut { // NaN
		return none
	}
	return digits(h.LeftOut, 2)
}

// modelsOf returns the models of runs, by name, then id.
func modelsOf(runs []record.StoredRun) []record.Model {
	byID := map[string]record.Model{}
	for i := range runs {
		byID[runs[i].Run.Model.ID] = runs[i].Run.Model
	}
	var out []record.Model
	for _, m := range byID {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b record.Model) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return out
}

// measuredCurve is the hit curve of a model under a policy, from the routing
// with most lookups; nil where none is stored.
func (d *Data) measuredCurve(m record.Model, policy string) func(f float64) float64 {
	var best *record.Histogram
	for i := range d.Histograms {
		h := &d.Histograms[i]
		if h.ModelID == m.ID && h.Policy == policy && h.Phase == "decode" && h.Lookups > 0 && (best == nil || h.Lookups > best.Lookups || (h.Lookups == best.Lookups && h.ID > best.ID)) {
			best = h
		}
	}
	if best == nil {
		return nil
	}
	return func(f float64) float64 {
		rate, _ := best.HitRate(int64(f * float64(m.RoutedBytes)))
		return rate
	}
}
