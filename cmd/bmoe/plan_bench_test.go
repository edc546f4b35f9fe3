package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/results/record"
)

// BenchmarkPlan holds plans to what they promise: a model under limits of 25,
// 40, 70 and 150 % of its size, with routing of skew 0, 1 and 2. Each run plans
// itself inside the limit, with nothing learned from earlier runs, and is
// compared with its own prediction, as made and with the measured hit rate in
// the place of the predicted one.
func BenchmarkPlan(b *testing.B) {
	var errs, given []float64
	fmt.Printf("\n| skew | limit | streams | cache MiB | predicted ms | measured ms | error | error, hit rate given | hits predicted | measured | peak of limit |\n|--:|--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, skew := range []float64{0, 1, 2} {
		spec := synth.Default()
		spec.Embd, spec.FF, spec.Skew = 2048, 512, skew
		model := benchModel(b, spec)
		for _, pct := range []int64{25, 40, 70, 150} {
			e, g, row := planned(b, model, pct)
			errs, given = append(errs, e), append(given, g)
			fmt.Printf("| %g | %d %% %s\n", skew, pct, row)
		}
		if err := os.Remove(model); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*median(errs), "%-error")
	b.ReportMetric(100*median(given), "%-error-hits-given")
}

// planned runs a model under a limit by its own plan and returns the relative
// errors of its prediction.
func planned(b *testing.B, model string, pct int64) (asMade, hitsGiven float64, row string) {
	b.Helper()
	st, err := os.Stat(model)
	if err != nil {
		b.Fatal(err)
	}
	limit := st.Size() * pct / 100
	g := limitMemory(b, limit)
	dropCache(b, model)
	args := []string{
		"run", "-m", model, "-p", "Once upon a time", "--random-tokens", "1", "-n", "96", "-c", "512",
		"--auto", "--no-record", "--db", filepath.Join(b.TempDir(), "none.db"), "--json",
	}
	var r record.Run
	raw := output(b, g.command(program(b, "bmoe"), args...))
	if err := json.Unmarshal(raw, &r); err != nil {
		b.Fatal(err)
	}
	keepDocument(b, fmt.Sprintf("plan-%s-%d.json", r.Model.ID[:8], pct), raw)
	if r.Prediction == nil || !r.Prediction.DecodeSPerToken.Known {
		b.Fatalf("limit %d %%: the plan gave no price: %+v", pct, r.Prediction)
	}
	if r.Config.MoeStream != r.Plan.Config.MoeStream || r.Config.CacheMB != r.Plan.Config.CacheMB {
		b.Errorf("limit %d %%: ran %v with %d MiB, planned %v with %d", pct, r.Config.MoeStream, r.Config.CacheMB, r.Plan.Config.MoeStream, r.Plan.Config.CacheMB)
	}
	p, m := &r.Prediction.Prediction, &r.Measured
	asMade = math.Abs(p.DecodeSPerToken.Point/m.DecodeSPerToken - 1)
	hitsGiven = asMade
	if again, ok := p.DecodeAt(byteHits(&r)); ok {
		hitsGiven = math.Abs(again/m.DecodeSPerToken - 1)
	}
	row = fmt.Sprintf("| %v | %d | %.1f | %.1f | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %.0f %% |", r.Config.MoeStream, max(0, r.Config.CacheMB),
		p.DecodeSPerToken.Point*1e3, m.DecodeSPerToken*1e3, 100*asMade, 100*hitsGiven, 100*p.HitRate.Point, 100*m.HitRate, 100*float64(m.RSSBytes)/float64(limit))
	return asMade, hitsGiven, row
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
