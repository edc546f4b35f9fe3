package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

func TestAPlanLearnsFromTheLedger(t *testing.T) {
	m, err := model.Open(planFixture(t))
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(t.TempDir(), "r.db")
	var p planner.Profile
	if err := learn(t.Context(), db, m, &p); err != nil || p.Locks.CacheRefused.OK() {
		t.Fatalf("a ledger that does not exist: %v, %+v", err, p.Locks)
	}
	store, err := results.Open(t.Context(), db, results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := modelRecord(m)
	if err != nil {
		t.Fatal(err)
	}
	run := record.Run{
		Schema: record.RunSchema, State: record.StateDone, StartedAt: time.Unix(1e9, 0).UTC(), FinishedAt: time.Unix(1e9+9, 0).UTC(),
		Machine: probes.Machine(t.Context()), Build: probes.Build(), Model: rec, Config: config.Default(),
		TokenNS: []int64{1e6, 1e6}, TokenWaitNS: []int64{0, 0}, TokenManageNS: []int64{4000, 4000},
	}
	run.Config.MoeStream, run.Config.CachePin, run.Config.CacheMB = true, true, 1
	run.Measured = record.Measured{DecodeSPerToken: 1e-3, DecodeTokens: 20, BytesPerToken: float64(rec.TokenCycle) / 2}
	run.Stats.DecodeLookups, run.Stats.DecodeHits, run.Stats.CachePinRefusedBytes = 80, 40, 12345
	if _, err := store.SaveRun(t.Context(), run, "", record.Slot{}, 0); err != nil {
		t.Fatal(err)
	}
	h := record.Histogram{ModelID: rec.ID, Policy: "lru", Phase: "decode", Lookups: 10, Cold: 2, Bins: []record.HistogramBin{{Bytes: 100, Count: 3}, {Bytes: 200, Count: 5}}}
	if _, err := store.SaveHistogram(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := learn(t.Context(), db, m, &p); err != nil {
		t.Fatal(err)
	}
	if p.Locks.CacheRefused.Value != 12345 {
		t.Errorf("refused %+v", p.Locks.CacheRefused)
	}
	if got := p.Overheads.PerLookup.Value; got != 8000/1e9/80 {
		t.Errorf("per lookup %g s", got)
	}
	curves := p.Hits.Curves.Value
	if len(curves) != 1 || len(curves[0].Points) != 2 || curves[0].Points[1].Hit != 0.8 {
		t.Errorf("curves %+v", curves)
	}
}
