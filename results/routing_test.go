package results

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

func TestRoutingFitsAndFactsComeBack(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	fill(t, s, 1)
	model := testModel(0).ID

	h := record.Histogram{ModelID: model, Policy: "lru", Phase: "decode", Lookups: 100, Cold: 10, Bins: []record.HistogramBin{{Bytes: 4096, Count: 40}, {Bytes: 1 << 33, Count: 50}}}
	id, err := s.SaveHistogram(ctx, h)
	must(t, err)
	hs, err := s.Histograms(ctx, model[:20])
	must(t, err)
	h.ID = id
	if diff := cmp.Diff([]record.Histogram{h}, hs); diff != "" {
		t.Errorf("histogram (-want +got):\n%s", diff)
	}
	if rate, ok := hs[0].HitRate(5000); !ok || rate != 0.4 {
		t.Errorf("hit rate at 5000 bytes %v", rate)
	}

	tr := record.Trace{ModelID: model, At: epoch, CSV: []byte("turn,phase\n0,decode\n")}
	tr.ID, err = s.SaveTrace(ctx, tr)
	must(t, err)
	ts, err := s.Traces(ctx, "")
	must(t, err)
	if diff := cmp.Diff([]record.Trace{tr}, ts); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}

	f := record.Fit{Method: "hit/1", ModelID: model, Inputs: []string{id}, Points: 8, Hypotheses: []record.Hypothesis{{Name: "h0-line", Params: map[string]float64{"k": 3.99}, RMSE: 0.096}}, Verdict: "refuted"}
	f.ID, err = s.SaveFit(ctx, f)
	must(t, err)
	fs, err := s.Fits(ctx, model)
	must(t, err)
	if diff := cmp.Diff([]record.Fit{f}, fs); diff != "" {
		t.Errorf("fit (-want +got):\n%s", diff)
	}
	if f.ID != f.ContentID() {
		t.Error("a fit is not stored under its content id")
	}

	facts := []planner.FactLine{{Name: "memory.total", State: "known", Value: 8e9, Unit: "bytes", Provenance: planner.Measured, CostS: 0.1}}
	_, err = s.SaveFacts(ctx, testMachine(1), testModel(0), epoch, facts)
	must(t, err)
	ps, err := s.Profiles(ctx, testMachine(1).ID)
	must(t, err)
	if len(ps) != 1 || ps[0].ModelID != model || cmp.Diff(facts, ps[0].Facts) != "" {
		t.Errorf("profiles: %+v", ps)
	}
}
