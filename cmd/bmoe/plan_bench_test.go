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

// BenchmarkPlan holds plans to what they promise: a model under limits of 25,
// 40, 70 and 150 % of its size, with routing of skew 0, 1 and 2. Each run plans
// itself inside the limit, nothing fitted, and is compared with three
// predictions: one that knows nothing of the model's routing and credits hits by
// the policy's line; one that has a routing of other tokens on record; and that
// with the measured hit rate in the place of the predicted one.
func BenchmarkPlan(b *testing.B) {
	var blind, known, given []float64
	fmt.Printf("\n| skew | limit | streams | cache MiB | measured ms | nothing known: ms, error | routing on record: ms, error | hit rate given: ms, error | hits: nothing known | on record | measured | peak of limit |\n|--:|--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, skew := range []float64{0, 1, 2} {
		spec := synth.Default()
		spec.Embd, spec.FF, spec.Skew = 2048, 512, skew
		model := benchModel(b, spec)
		curves := recordRouting(b, model)
		for _, pct := range []int64{25, 40, 70, 150} {
			e, row := planned(b, model, curves, pct)
			blind, known, given = append(blind, e[0]), append(known, e[1]), append(given, e[2])
			fmt.Printf("| %g | %d %% %s\n", skew, pct, row)
		}
		if err := os.Remove(model); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*median(blind), "%-error-nothing-known")
	b.ReportMetric(100*median(known), "%-error-routing-known")
	b.ReportMetric(100*median(given), "%-error-hits-given")
}

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

// planned runs a model under a limit by its own plan and returns the relative
// errors of its three predictions.
func planned(b *testing.B, model, curves string, pct int64) (errs [3]float64, row string) {
	b.Helper()
	st, err := os.Stat(model)
	if err != nil {
		b.Fatal(err)
	}
	limit := st.Size() * pct / 100
	g := limitMemory(b, limit)
	dropCache(b, model)
	args := []string{"-m", model, "-p", "Once upon a time", "--random-tokens", "1", "-n", "96", "-c", "512", "--json"}
	none := filepath.Join(b.TempDir(), "none.db")
	var blind planner.Plan
	if err := json.Unmarshal(output(b, g.command(program(b, "bmoe"), append([]string{"plan", "--db", none}, args...)...)), &blind); err != nil {
		b.Fatal(err)
	}
	var r record.Run
	raw := output(b, g.command(program(b, "bmoe"), append([]string{"run", "--auto", "--no-record", "--db", curves}, args...)...))
	if err := json.Unmarshal(raw, &r); err != nil {
		b.Fatal(err)
	}
	keepDocument(b, fmt.Sprintf("plan-%s-%d.json", r.Model.ID[:8], pct), raw)
	if r.Prediction == nil || !r.Prediction.DecodeSPerToken.Known || !blind.Prediction.DecodeSPerToken.Known {
		b.Fatalf("limit %d %%: the plan gave no price: %+v", pct, r.Prediction)
	}
	if r.Config.MoeStream != r.Plan.Config.MoeStream || r.Config.CacheMB != r.Plan.Config.CacheMB {
		b.Errorf("limit %d %%: ran %v with %d MiB, planned %v with %d", pct, r.Config.MoeStream, r.Config.CacheMB, r.Plan.Config.MoeStream, r.Plan.Config.CacheMB)
	}
	p, m := &r.Prediction.Prediction, &r.Measured
	given := p.DecodeSPerToken.Point
	if again, ok := p.DecodeAt(byteHits(&r)); ok {
		given = again
	}
	row = fmt.Sprintf("| %v | %d | %.1f |", r.Config.MoeStream, max(0, r.Config.CacheMB), m.DecodeSPerToken*1e3)
	for i, v := range []float64{blind.Prediction.DecodeSPerToken.Point, p.DecodeSPerToken.Point, given} {
		errs[i] = math.Abs(v/m.DecodeSPerToken - 1)
		row += fmt.Sprintf(" %.1f, %.0f %% |", v*1e3, 100*errs[i])
	}
	row += fmt.Sprintf(" %.0f %% | %.0f %% | %.0f %% | %.0f %% |", 100*blind.Prediction.HitRate.Point, 100*p.HitRate.Point, 100*m.HitRate, 100*float64(m.RSSBytes)/float64(limit))
	return errs, row
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
