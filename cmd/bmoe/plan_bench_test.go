package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

// planRounds is how often each model is planned and run under each limit, in
// interleaved rounds: the machine's pace may change between a plan's probe and
// its run, and between minutes.
const planRounds = 3

// BenchmarkPlan holds plans to what they promise: a model under limits of 25,
// 40, 70 and 150 % of its size, with routing of skew 0, 1 and 2. Each run plans
// itself inside the limit, nothing fitted, and is compared with three
// predictions: one that knows nothing of the model's routing; one that has a
// routing of other tokens on record; and that with the measured hit rate in the
// place of the predicted one. A cell's error is that of its rounds' medians.
func BenchmarkPlan(b *testing.B) {
	limits := []int64{25, 40, 70, 150}
	var cells []*planCell
	for _, skew := range []float64{0, 1, 2} {
		spec := synth.Default()
		spec.Embd, spec.FF, spec.Skew = 2048, 512, skew
		model := benchModel(b, spec)
		curves := recordRouting(b, model)
		for _, pct := range limits {
			cells = append(cells, &planCell{model: model, curves: curves, skew: skew, pct: pct})
		}
	}
	for range planRounds {
		for _, c := range cells {
			c.run(b)
		}
	}
	fmt.Printf("\n| skew | limit | streams | cache MiB | measured ms | nothing known: ms, error | routing on record: ms, error | hit rate given: ms, error | hits: nothing known | on record | measured | peak of limit |\n|--:|--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	var errs, single [3][]float64
	for _, c := range cells {
		fmt.Println(c.row())
		for i := range errs {
			errs[i] = append(errs[i], relative(median(c.predicted[i]), median(c.measured)))
			for n, m := range c.measured {
				single[i] = append(single[i], relative(c.predicted[i][n], m))
			}
		}
	}
	for i, name := range []string{"nothing-known", "routing-known", "hits-given"} {
		b.ReportMetric(100*median(errs[i]), "%-error-"+name)
		b.ReportMetric(100*median(single[i]), "%-of-one-run-"+name)
	}
}

func relative(predicted, measured float64) float64 { return math.Abs(predicted/measured - 1) }

// recordRouting leaves the hit curves of a routing in a ledger that knows
// nothing else, and returns its path.
func recordRouting(b *testing.B, model string) string {
	b.Helper()
	dir := b.TempDir()
	db, route := filepath.Join(dir, "curves.db"), filepath.Join(dir, "route.csv")
	var none *memoryGroup
	output(b, none.command(program(b, "bmoe"), "run", "-m", model, "-p", "Once upon a time", "--random-tokens", "2", "-n", "96", "-c", "512",
		"--moe-stream", "--cache-mb", "400", "--route-trace", route, "--no-record", "--json"))
	output(b, none.command(program(b, "bmoe"), "fit", "--trace", route, "-m", model, "--db", db, "--json"))
	return db
}

// planCell is a model under a limit, its runs and what was predicted of them:
// with nothing known, a routing on record, the hit rate given.
type planCell struct {
	model, curves string
	skew          float64
	pct           int64

	measured  []float64 // seconds a token
	predicted [3][]float64
	peak      float64 // of the limit, the highest
	last      record.Run
	blindHits float64
}

// run plans and runs the model inside the limit once.
func (c *planCell) run(b *testing.B) {
	b.Helper()
	st, err := os.Stat(c.model)
	if err != nil {
		b.Fatal(err)
	}
	limit := st.Size() * c.pct / 100
	g := limitMemory(b, limit)
	dropCache(b, c.model)
	args := []string{"-m", c.model, "-p", "Once upon a time", "--random-tokens", "1", "-n", "96", "-c", "512", "--json"}
	none := filepath.Join(b.TempDir(), "none.db")
	var blind planner.Plan
	if err := json.Unmarshal(output(b, g.command(program(b, "bmoe"), append([]string{"plan", "--db", none}, args...)...)), &blind); err != nil {
		b.Fatal(err)
	}
	var r record.Run
	raw := output(b, g.command(program(b, "bmoe"), append([]string{"run", "--auto", "--no-record", "--db", c.curves}, args...)...))
	if err := json.Unmarshal(raw, &r); err != nil {
		b.Fatal(err)
	}
	keepDocument(b, fmt.Sprintf("plan-%g-%d-%d.json", c.skew, c.pct, len(c.measured)), raw)
	if r.Prediction == nil || !r.Prediction.DecodeSPerToken.Known || !blind.Prediction.DecodeSPerToken.Known {
		b.Fatalf("limit %d %%: the plan gave no price: %+v", c.pct, r.Prediction)
	}
	if r.Config.MoeStream != r.Plan.Config.MoeStream || r.Config.CacheMB != r.Plan.Config.CacheMB {
		b.Errorf("limit %d %%: ran %v with %d MiB, planned %v with %d", c.pct, r.Config.MoeStream, r.Config.CacheMB, r.Plan.Config.MoeStream, r.Plan.Config.CacheMB)
	}
	c.add(&r, blind.Prediction, limit)
}

func (c *planCell) add(r *record.Run, blind planner.Prediction, limit int64) {
	p := &r.Prediction.Prediction
	given := p.DecodeSPerToken.Point
	if again, ok := p.DecodeAt(byteHits(r)); ok {
		given = again
	}
	c.measured = append(c.measured, r.Measured.DecodeSPerToken)
	for i, v := range []float64{blind.DecodeSPerToken.Point, p.DecodeSPerToken.Point, given} {
		c.predicted[i] = append(c.predicted[i], v)
	}
	c.peak = max(c.peak, float64(r.Measured.RSSBytes)/float64(limit))
	c.last, c.blindHits = *r, blind.HitRate.Point
}

func (c *planCell) row() string {
	m := median(c.measured)
	text := fmt.Sprintf("| %g | %d %% | %v | %d | %.1f |", c.skew, c.pct, c.last.Config.MoeStream, max(0, c.last.Config.CacheMB), m*1e3)
	for _, p := range c.predicted {
		text += fmt.Sprintf(" %.1f, %.0f %% |", median(p)*1e3, 100*relative(median(p), m))
	}
	return text + fmt.Sprintf(" %.0f %% | %.0f %% | %.0f %% | %.0f %% |",
		100*c.blindHits, 100*c.last.Prediction.HitRate.Point, 100*c.last.Measured.HitRate, 100*c.peak)
}

// byteHits is the share of a token's expert bytes that were not read.
func byteHits(r *record.Run) float64 {
	if !r.Config.MoeStream || r.Model.TokenCycle == 0 {
		return 1
	}
	return 1 - r.Measured.BytesPerToken/float64(r.Model.TokenCycle)
}

// keepDocument leaves a run's document in the folder that KEEP_DOCUMENTS names,
// to look at what a benchmark's table does not show.
func keepDocument(b *testing.B, name string, raw []byte) {
	b.Helper()
	dir := os.Getenv("KEEP_DOCUMENTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
		b.Fatal(err)
	}
}
