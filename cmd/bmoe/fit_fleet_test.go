package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine/counters"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// lineRuns stores runs of a model on a machine: hit rates on the line of slope
// k, and tokens that take times seconds, half as long again as predicted.
func lineRuns(t *testing.T, path string, machine record.Machine, m record.Model, k, times float64) {
	t.Helper()
	s, err := results.Open(t.Context(), path, results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for n := range 6 {
		f := 0.05 + 0.03*float64(n)
		cfg := config.Default()
		cfg.MoeStream, cfg.CacheMB = true, 1
		started := at.Add(time.Duration(n) * time.Hour)
		pred := record.NewPrediction(planner.Prediction{
			DecodeSPerToken: planner.Estimate{Known: true, Point: times / 1.5, Lo: times / 2, Hi: times}, HitRate: planner.Estimate{Known: true, Point: f},
		}, started)
		r := record.Run{
			Schema: record.RunSchema, StartedAt: started, FinishedAt: started, State: record.StateDone, Machine: machine, Build: probes.Build(), Model: m, Config: cfg, Prediction: &pred,
			TokenNS: []int64{int64(times * 1e9)}, TokenWaitNS: []int64{0}, TokenManageNS: []int64{int64(times * 1e8)},
			Measured: record.Measured{DecodeSPerToken: times, HitRate: k * f, DecodeTokens: 100, BytesPerToken: (1 - k*f) * float64(m.TokenCycle)},
			Stats:    counters.Counters{CacheBudgetBytes: int64(math.Round(f * float64(m.RoutedBytes))), DecodeLookups: 100000, DecodeHits: int64(math.Round(100000 * k * f))},
		}
		if _, err := s.SaveRun(t.Context(), r, "", record.Slot{}, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// Databases of two machines of which one is a hundred times as fast: fits pool
// what does not depend on a machine, hits by share and measured by predicted,
// and times stay with their machine.
func TestFitsOfTwoMachinesMerge(t *testing.T) {
	gguf := planFixture(t)
	file, err := model.Open(gguf)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelRecord(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	here, there := filepath.Join(dir, "here.db"), filepath.Join(dir, "there.db")
	lineRuns(t, here, probes.Machine(t.Context()), m, 2, 0.01)
	lineRuns(t, there, record.Machine{CPU: "other", Cores: 64}, m, 3, 0.0001)
	fit := func(db string, args ...string) (doc fitDoc) {
		code, out, errs := runBmoe(t, append([]string{"fit", "--json", "--no-record", "--db", db}, args...)...)
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, errs)
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	alone, other := fit(here, "-m", gguf), fit(there, "-m", gguf)
	var before planner.Profile
	if err := learn(t.Context(), here, file, &before); err != nil {
		t.Fatal(err)
	}
	for range 2 { // merging twice changes nothing
		if code, _, errs := runBmoe(t, "db", "merge", here, there); code != exitOK {
			t.Fatalf("merge: exit %d: %s", code, errs)
		}
	}
	both := fit(here, "-m", gguf)
	if both.Points != alone.Points+other.Points || both.Clusters != 2 {
		t.Errorf("%d points of %d clusters after the merge, want %d of 2", both.Points, both.Clusters, alone.Points+other.Points)
	}
	k := func(d fitDoc) float64 { return d.Hypotheses[0].Params["k"] }
	if math.Abs(k(alone)-2) > 1e-3 || math.Abs(k(other)-3) > 1e-3 || math.Abs(k(both)-2.5) > 1e-3 {
		t.Errorf("k %.3f and %.3f pooled to %.3f, want 2, 3 and 2.5", k(alone), k(other), k(both))
	}
	if want := math.Log(1.5); both.Decode == nil || math.Abs(both.Decode.Bias-want) > 1e-9 || both.Decode.N != 12 {
		t.Errorf("errors of s/token pooled: %+v, want a bias of %.3f: ratios, whatever the machine's speed", both.Decode, want)
	}
	var after planner.Profile
	if err := learn(t.Context(), here, file, &after); err != nil {
		t.Fatal(err)
	}
	if got, want := after.Overheads.PerLookup.Value, before.Overheads.PerLookup.Value; got != want || got == 0 {
		t.Errorf("a lookup cost %g s before the merge and %g after: another machine's time got in", want, got)
	}
	if how := after.Hits.Fit.Reason; !strings.Contains(how, "12 runs of this model on 2 machines") {
		t.Errorf("the fit is %q", how)
	}
}

// A model that never ran is planned with the runs of its class, and the plan
// says so.
func TestAPlanPoolsItsClass(t *testing.T) {
	gguf := planFixture(t)
	file, err := model.Open(gguf)
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(t.TempDir(), "r.db")
	for i, experts := range []int{8, 8, 64} {
		like := record.Model{ID: strings.Repeat(fmt.Sprint(i+1), 64), Name: fmt.Sprint("m", i), Arch: "llama", Layers: 2, Experts: experts, ExpertsUsed: 2, RoutedBytes: 1 << 20, TokenCycle: 1 << 10}
		lineRuns(t, db, record.Machine{CPU: "other", Cores: 4}, like, 2+float64(i), 1)
	}
	var p planner.Profile
	if err := learn(t.Context(), db, file, &p); err != nil {
		t.Fatal(err)
	}
	if f := p.Hits.Fit; math.Abs(f.Value.K-2.5) > 1e-3 || f.Provenance != planner.Measured || f.Reason != "from 12 runs of models of 8 experts, 2 used on 1 machine" {
		t.Errorf("fit %+v", f)
	}
	if p.Overheads.PerLookup.OK() {
		t.Error("another model's runs taught this one times")
	}
}
