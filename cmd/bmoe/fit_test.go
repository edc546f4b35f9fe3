package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine/counters"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

func TestFitOfPublishedTrace(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "data", "routing", "qwen.route.csv")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		t.Skip("../shared/data/routing/qwen.route.csv is not beside the repository")
	}
	plots := t.TempDir()
	code, out, errs := runBmoe(t, "fit", "--trace", path, "--json", "--plot", plots)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var doc fitDoc
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string][2]float64{"h0-line": {3.99, 0.096}, "h0-raw": {2.70, 0.225}, "h1-saturating": {7.05, 0.013}}
	for _, h := range doc.Hypotheses {
		if w, ok := want[h.Name]; ok {
			for _, v := range h.Params {
				if math.Abs(v-w[0]) > 0.01 || math.Abs(h.RMSE-w[1]) > 0.01 {
					t.Errorf("%s: %v, RMSE %v; want %v", h.Name, v, h.RMSE, w)
				}
			}
			delete(want, h.Name)
		}
	}
	if len(want) > 0 || doc.Verdict != "refuted" || doc.Points != 8 {
		t.Errorf("missing %v, verdict %s, points %d", want, doc.Verdict, doc.Points)
	}
	for _, name := range []string{"hits-fit.svg", "hits-fit.png"} {
		if _, err := os.Stat(filepath.Join(plots, name)); err != nil {
			t.Error(err)
		}
	}
}

// fitLedgerFile stores runs of two models whose hit rate is min(1, 2f) and
// min(1, 2.5f), each predicted exactly before it started.
func fitLedgerFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.db")
	s, err := results.Open(t.Context(), path, results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for n := range 12 {
		m := record.Model{ID: strings.Repeat(fmt.Sprint(n%2+1), 64), Name: fmt.Sprintf("synth%d", n%2+1), Arch: "llama", Layers: 2, Experts: 64, ExpertsUsed: 4 * (n%2 + 1), RoutedBytes: 1000, TokenCycle: 10}
		f := 0.05 + 0.02*float64(n)
		k := 2 + 0.5*float64(n%2)
		cfg := config.Default()
		cfg.MoeStream = true
		started := at.Add(time.Duration(n) * time.Hour)
		pred := record.NewPrediction(planner.Prediction{
			DecodeSPerToken: planner.Estimate{Known: true, Point: 0.01, Lo: 0.009, Hi: 0.011}, HitRate: planner.Estimate{Known: true, Point: k * f},
		}, started)
		r := record.Run{
			Schema: record.RunSchema, StartedAt: started, FinishedAt: started, State: record.StateDone, Machine: record.Machine{CPU: "x", Cores: 2}, Model: m, Config: cfg, Prediction: &pred,
			Measured: record.Measured{DecodeSPerToken: 0.0105, HitRate: k * f, DecodeTokens: 100},
			Stats:    counters.Counters{CacheBudgetBytes: int64(math.Round(1000 * f)), DecodeLookups: 100000, DecodeHits: int64(math.Round(100000 * k * f))},
		}
		if _, err := s.SaveRun(t.Context(), r, "", record.Slot{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFitFromLedger(t *testing.T) {
	db := fitLedgerFile(t)
	fit := func(args ...string) (doc fitDoc) {
		code, out, errs := runBmoe(t, append([]string{"fit", "--json", "--db", db}, args...)...)
		if code != exitOK {
			t.Fatalf("%q: exit %d: %s", args, code, errs)
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	one := fit("-m", "synth2")
	if k := one.Hypotheses[0].Params["k"]; math.Abs(k-2.5) > 1e-3 || one.Points != 6 || one.Clusters != 1 {
		t.Errorf("k %v from %d points of %d clusters, want 2.5 from 6 of 1", k, one.Points, one.Clusters)
	}
	if one.Verdict == "refuted" {
		t.Errorf("points on the line refute it: %s", one.Reason)
	}
	if one.Decode == nil || one.Decode.N != 6 || one.Decode.Covered != 6 || math.Abs(one.Decode.MedianAbs-math.Log(1.05)) > 1e-9 || one.Decode.BaselineN != 5 {
		t.Errorf("predictions of s/token: %+v", one.Decode)
	}
	if one.Hits == nil || one.Hits.MedianAbs > 1e-9 {
		t.Errorf("predictions of the hit rate: %+v", one.Hits)
	}
	if again := fit("-m", "synth2"); again.FitID == "" || again.FitID != one.FitID {
		t.Errorf("the same runs give fit %q, then %q", one.FitID, again.FitID)
	}
	all := fit("--all")
	if all.Clusters != 2 || len(all.Groups) != 2 || all.Interval.Method != "signed-rank over clusters" || all.Interval.Level > 0.51 {
		t.Errorf("all: %d clusters, %d groups, interval %+v", all.Clusters, len(all.Groups), all.Interval)
	}
	code, out, _ := runBmoe(t, "fit", "--db", db, "--all", "--no-record")
	if code != exitOK || !strings.Contains(out, "2 clusters cannot give 95.0 %") {
		t.Errorf("exit %d, text:\n%s", code, out)
	}
}

// A trace of a model in the ledger leaves its curves there.
func TestFitTraceStoresCurves(t *testing.T) {
	db := fitLedgerFile(t)
	var b strings.Builder
	b.WriteString("# n_layer=2 n_expert=64\n# layer=0 expert_bytes=1000\n# layer=1 expert_bytes=1000\nturn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n")
	for step := range 60 {
		for layer := range 2 {
			fmt.Fprintf(&b, "0,1,%d,%d,0,%d,,0,0\n", step, layer, (step*step+layer)%23)
		}
	}
	code, out, errs := runBmoe(t, "fit", "--db", db, "--trace", tinyFile(t, b.String()), "-m", "synth1")
	if code != exitOK || !strings.Contains(out, "hit curves stored for the next plan: a2d, lru") {
		t.Fatalf("exit %d, stderr %q, stdout:\n%s", code, errs, out)
	}
	s, err := results.Open(t.Context(), db, results.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.Histograms(t.Context(), strings.Repeat("1", 64))
	if err != nil || len(list) != 4 {
		t.Errorf("%d curves stored, %v; want 4", len(list), err)
	}
	code, _, errs = runBmoe(t, "fit", "--db", db, "--trace", tinyFile(t, tinyTrace), "-m", "synth1")
	if code == exitOK || !strings.Contains(errs, "a fit wants at least 2") {
		t.Errorf("a trace of another model: exit %d, %q", code, errs)
	}
}

// A model that never ran may have its routing stored: the next plan has it.
func TestFitTraceOfANewModel(t *testing.T) {
	gguf, db := planFixture(t), filepath.Join(t.TempDir(), "new.db")
	var b strings.Builder
	b.WriteString("# n_layer=2 n_expert=8\n# layer=0 expert_bytes=13056\n# layer=1 expert_bytes=13056\nturn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n")
	for step := range 60 {
		for layer := range 2 {
			fmt.Fprintf(&b, "0,1,%d,%d,0,%d,,0,0\n", step, layer, (step*step+layer)%8)
		}
	}
	if code, out, errs := runBmoe(t, "fit", "--db", db, "--trace", tinyFile(t, b.String()), "-m", gguf); code != exitOK {
		t.Fatalf("exit %d, stderr %q, stdout:\n%s", code, errs, out)
	}
	m, err := model.Open(gguf)
	if err != nil {
		t.Fatal(err)
	}
	var p planner.Profile
	if err := learn(t.Context(), db, m, &p); err != nil {
		t.Fatal(err)
	}
	if !p.Hits.Curves.OK() || p.Hits.Curves.Reason != "from 1 recorded routing" {
		t.Errorf("curves %+v", p.Hits.Curves)
	}
	for _, c := range p.Hits.Curves.Value {
		for _, q := range c.Points {
			if q.Hit > 0.02 && q.Hit < 0.98 && q.Half <= 0 {
				t.Errorf("%s at %d bytes: hits %.2f with no interval", c.Policy, q.Bytes, q.Hit)
			}
		}
	}
}

func TestFitFailsPlainly(t *testing.T) {
	db := fitLedgerFile(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "fit takes -m MODEL, --trace FILE or --all"},
		{[]string{"--all", "--trace", "x"}, exitUsage, "fit takes -m MODEL, --trace FILE or --all"},
		{[]string{"--all", "--policy", "mru"}, exitUsage, `--policy "mru"`},
		{[]string{"--trace", tinyFile(t, tinyTrace), "--policy", "a2d"}, exitUsage, "a trace's curve is LRU's"},
		{[]string{"-m", "nosuch"}, exitFailure, "no run of model nosuch is stored"},
		{[]string{"--all", "--policy", "layer-lfu"}, exitFailure, "bmoe sweep -m MODEL --lever cache-mb"},
	} {
		code, out, errs := runBmoe(t, append([]string{"fit", "--db", db}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want exit %d and %q", c.args, code, out, errs, c.code, c.want)
		}
	}
}
