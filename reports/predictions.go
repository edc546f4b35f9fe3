package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

// nominalCoverage is the level at which plans state their intervals.
const nominalCoverage = 0.9

// reportLevel is the nominal level of the report's own intervals.
const reportLevel = 0.95

// quantity is one thing a plan predicts.
type quantity struct {
	name      string
	predicted func(*planner.Prediction) planner.Estimate
	measured  func(*record.Run) float64
	write     func(float64) string
}

var quantities = []quantity{
	{"decode, s/token", func(p *planner.Prediction) planner.Estimate { return p.DecodeSPerToken }, func(r *record.Run) float64 { return r.Measured.DecodeSPerToken }, seconds},
	{"prefill, t/s", func(p *planner.Prediction) planner.Estimate { return p.PrefillTokensPerS }, prefillOfWholePass, func(x float64) string { return digits(x, 4) }},
	{"decode, bytes/token", func(p *planner.Prediction) planner.Estimate { return p.BytesPerToken }, func(r *record.Run) float64 { return r.Measured.BytesPerToken }, func(x float64) string { return mebibytes(x) + " MiB" }},
	{"hit rate", func(p *planner.Prediction) planner.Estimate { return p.HitRate }, func(r *record.Run) float64 { return r.Measured.HitRate }, func(x float64) string { return percent(x) + " %" }},
}

// prefillOfWholePass is the prompt's rate where the prompt filled a pass: that is
// what a plan predicts, and a prompt of ten words is another thing.
func prefillOfWholePass(r *record.Run) float64 {
	if r.Measured.PromptTokens < int64(r.Config.UBatch()) {
		return 0
	}
	return r.Measured.PrefillTokensPerS
}

// scores are a quantity's predictions beside what was measured.
type scores struct {
	list []analysis.Scored
	of   []*record.StoredRun
}

// scored pairs predictions with measurements; runs are in order. The baseline is the last value
// measured on the same machine and model.
func (q *quantity) scored(runs []*record.StoredRun) (s scores) {
	type place struct{ machine, model string }
	last := map[place]float64{}
	for _, r := range runs {
		m := q.measured(&r.Run)
		if len(r.Void) > 0 || r.Run.State != record.StateDone || !(m > 0) {
			continue
		}
		key := place{r.Run.Machine.ID, r.Run.Model.ID}
		if r.Run.Prediction != nil {
			if e := q.predicted(&r.Run.Prediction.Prediction); e.Known && e.Point > 0 {
				s.list = append(s.list, analysis.Scored{Predicted: e.Point, Lo: e.Lo, Hi: e.Hi, Measured: m, Baseline: last[key], Cluster: key.machine + "/" + key.model})
				s.of = append(s.of, r)
			}
		}
		last[key] = m
	}
	return s
}

// predictionsSection is predicted against measured.
func (d *Data) predictionsSection() (Section, error) {
	s := Section{ID: "predictions", Title: "Predictions"}
	f, ok, err := predictedFigure(d.index().runs)
	if err != nil {
		return s, err
	}
	if !ok {
		s.Blocks = append(s.Blocks, Text("No run has both a prediction and a measured rate yet."))
		return s, nil
	}
	s.Blocks = append(s.Blocks, f, d.calibrationTable(), d.missesTable())
	return s, nil
}

func (d *Data) calibrationTable() Table {
	runs := predicted(d.index().runs)
	from, to := span(runs)
	t := Table{
		Caption: fmt.Sprintf("How predictions did, all written down before their run; %s; %s; baseline is the last value measured on the same machine and model. "+
			"An error is a factor less one, the same either way. Prefill counts prompts that filled a pass. Coverage should be %s %%; the interval score is on the log scale, smaller is better.", settingsOf(runs), dates(from, to), percent(nominalCoverage)),
		Columns: columns("quantity", "#n", "#bias %", "#median error %", "#within 10 %", "#within 25 %", "#within 2x", "#in interval", "#coverage 95 % CI", "#interval score", "#baseline n", "#baseline median error %"),
	}
	for i := range quantities {
		q := &quantities[i]
		c := analysis.Calibrate(d.index().scores[i].list, nominalCoverage, reportLevel)
		if c.N == 0 {
			continue
		}
		base := none
		if c.Baseline.N > 0 {
			base = percent(math.Expm1(c.Baseline.MedianAbs))
		}
		t.Rows = append(t.Rows, []string{
			q.name, strconv.Itoa(c.N), signedPercent(math.Expm1(c.Bias)), percent(math.Expm1(c.MedianAbs)),
			strconv.Itoa(c.Within[0]), strconv.Itoa(c.Within[1]), strconv.Itoa(c.Within[2]),
			fmt.Sprintf("%d of %d", c.Covered, c.Stated), fmt.Sprintf("[%s, %s]", percent(c.CoverageCI.Lo), percent(c.CoverageCI.Hi)),
			digits(c.Winkler, 3), strconv.Itoa(c.Baseline.N), base,
		})
	}
	return t
}

// settingsOf counts the machines, builds and models behind runs.
func settingsOf(runs []*record.StoredRun) string {
	machines, builds, models := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range runs {
		machines[runs[i].Run.Machine.ID], builds[runs[i].Run.Build.ID], models[runs[i].Run.Model.ID] = true, true, true
	}
	if len(machines) == 1 && len(builds) == 1 && len(models) == 1 {
		r := &runs[0].Run
		return setting{r.Machine, r.Build, r.Model}.label()
	}
	return fmt.Sprintf("%s, %s, %s", analysis.Count(len(machines), "machine"), analysis.Count(len(builds), "build"), analysis.Count(len(models), "model"))
}

// whereAndWhen says on what machines, builds and models runs in any order were
// made, and when.
func whereAndWhen(runs []*record.StoredRun) string {
	if len(runs) == 0 {
		return none
	}
	from, to := span(runs)
	return settingsOf(runs) + "; " + dates(from, to)
}

func missedRuns(list []miss) (out []*record.StoredRun) {
	for _, m := range list {
		out = append(out, m.run)
	}
	return out
}

// miss is a prediction that its measurement did not keep to.
type miss struct {
	run   *record.StoredRun
	q     *quantity
	s     analysis.Scored
	error float64 // ln(measured/predicted)
}

// misses returns the predictions whose interval did not hold, worst first.
func misses(all []scores) []miss {
	var out []miss
	for i, q := range all {
		for n, s := range q.list {
			if s.Hi > 0 && (s.Measured < s.Lo || s.Measured > s.Hi) {
				out = append(out, miss{q.of[n], &quantities[i], s, math.Log(s.Measured / s.Predicted)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b miss) int {
		return cmp.Or(cmp.Compare(math.Abs(b.error), math.Abs(a.error)), byStart(a.run, b.run))
	})
	return out
}

// missesShown bounds the table of misses.
const missesShown = 20

func (d *Data) missesTable() Table {
	all := d.index().misses
	t := Table{
		Caption: fmt.Sprintf("What the planner got wrong: measurements outside their predicted interval (%s %%), worst first, %d of n = %d. %s.",
			percent(nominalCoverage), min(len(all), missesShown), len(all), whereAndWhen(missedRuns(all))),
		Columns: columns("run", "model", "quantity", "#predicted", "#interval", "#measured", "#measured/predicted - 1, %", "predicted from"),
	}
	for _, m := range all[:min(len(all), missesShown)] {
		basis := m.q.predicted(&m.run.Run.Prediction.Prediction).Basis
		t.Rows = append(t.Rows, []string{
			short(m.run.Run.RunID), orWord(m.run.Run.Model.Name, short(m.run.Run.Model.ID)), m.q.name, m.q.write(m.s.Predicted),
			fmt.Sprintf("[%s, %s]", m.q.write(m.s.Lo), m.q.write(m.s.Hi)), m.q.write(m.s.Measured), signedPercent(math.Expm1(m.error)), basis,
		})
	}
	return t
}
