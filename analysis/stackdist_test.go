package analysis

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/engine/cachepolicy"
	"github.com/bmoe/bmoe/engine/trace"
)

// At each bin's size the histogram gives what a replay at that size gives.
func TestHistogramEqualsReplayAtItsBins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRouting(t)
		for _, policy := range []string{cachepolicy.LRU, cachepolicy.A2D} {
			h, ok := HitHistogram(r, policy)
			if !ok {
				continue // no decode was drawn
			}
			best := 0.0
			for _, b := range h.Bins {
				got, _ := h.HitRate(b.Bytes)
				want := mustReplay(t, r, policy, b.Bytes).Decode.HitRate()
				best = math.Max(best, want)
				if math.Abs(got-best) > 1e-12 {
					t.Fatalf("%s at %d bytes: histogram %v, replay %v", policy, b.Bytes, got, want)
				}
			}
		}
	})
}

func TestHistogramOfPublishedTrace(t *testing.T) {
	r := qwenRouting(t)
	lru, ok := HitHistogram(r, cachepolicy.LRU)
	if !ok || len(lru.Bins) > histogramBins || lru.Lookups != 36864 {
		t.Fatalf("lru: ok %v, %d bins, %d lookups", ok, len(lru.Bins), lru.Lookups)
	}
	for _, row := range qwenCurve(t) {
		if row.policy == "lru" {
			got, _ := lru.HitRate(row.budget)
			within(t, "lru", 100*got, row.decode, 0.5) // a bin is 1/256 of the hits
		}
	}
	a2d, ok := HitHistogram(r, cachepolicy.A2D)
	if !ok || len(a2d.Bins) > mostReplayBins {
		t.Fatalf("a2d: ok %v, %d bins", ok, len(a2d.Bins))
	}
	for _, b := range a2d.Bins {
		l, _ := lru.HitRate(b.Bytes)
		if a, _ := a2d.HitRate(b.Bytes); a < l-0.005 {
			t.Errorf("at %d MiB a2d has %.3f and lru %.3f", b.Bytes/mib, a, l)
		}
	}
}

// A log gives the routing that the trace of the same picks gives.
func TestRoutingFromLogEqualsTrace(t *testing.T) {
	tr := &trace.Trace{Header: trace.Header{Experts: 8, Layers: []trace.Layer{{ExpertBytes: 3}, {ExpertBytes: 5}}}}
	log := trace.NewLog(8, []int64{3, 5}, 1000)
	for step := range int32(12) {
		for layer := range int32(2) {
			picks := []int32{(step * 3) % 8, (step + 5*layer + 1) % 8}
			phase := int32(trace.Decode)
			log.Add(0, int(layer), picks, 1, false)
			for slot, e := range picks {
				tr.Picks = append(tr.Picks, trace.Pick{Phase: phase, Step: step, Layer: layer, Slot: int32(slot), Expert: e})
			}
		}
	}
	want, _ := NewRouting(tr)
	got := NewRoutingFromLog(log)
	for _, policy := range ReplayPolicies() {
		for budget := int64(0); budget < want.RoutedBytes(); budget += 7 {
			if g, w := mustReplay(t, got, policy, budget), mustReplay(t, want, policy, budget); g != w {
				t.Fatalf("%s at %d: log %+v, trace %+v", policy, budget, g, w)
			}
		}
	}
}
