package analysis

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/engine/cachepolicy"
)

// anyRouting draws a small routing with mixed slice sizes.
func anyRouting(t *rapid.T) *Routing {
	layers, experts := rapid.IntRange(1, 4).Draw(t, "layers"), rapid.IntRange(1, 8).Draw(t, "experts")
	r := &Routing{Experts: experts, ExpertBytes: rapid.SliceOfN(rapid.Int64Range(1, 5), layers, layers).Draw(t, "bytes")}
	c := cachepolicy.NewCollector(experts)
	for n := range rapid.IntRange(1, 40).Draw(t, "batches") {
		picks := rapid.SliceOfN(rapid.Int32Range(0, int32(experts-1)), 1, 4).Draw(t, "picks")
		ids, counts := c.Distinct(picks)
		r.Batches = append(r.Batches, RoutedBatch{
			Layer: n % layers, Tokens: len(picks), Prompt: n < layers,
			IDs: append([]int32(nil), ids...), Counts: append([]int32(nil), counts...),
		})
	}
	return r
}

func mustReplay(tb interface{ Fatal(...any) }, r *Routing, policy string, budget int64) ReplayResult {
	res, err := Replay(r, policy, budget)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// The one-pass curve is LRU at every budget, mixed sizes and budgets smaller
// than a batch included.
func TestLRUCurveEqualsReplayAtAllBudgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRouting(t)
		c := NewLRUCurve(r)
		for budget := range r.RoutedBytes() + 2 {
			lru := mustReplay(t, r, cachepolicy.LRU, budget)
			onePass := mustReplay(t, r, StackDistance, budget)
			at := c.At(budget)
			if at != onePass {
				t.Fatalf("budget %d: curve %+v, its own replay %+v", budget, at, onePass)
			}
			if at.All != lru.All || at.Decode != lru.Decode {
				t.Fatalf("budget %d: curve %+v, replayed LRU %+v", budget, at, lru)
			}
		}
	})
}

// With equal slice sizes nothing beats Belady, and a budget that holds
// everything misses each expert exactly once whatever the policy.
func TestBeladyIsABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRouting(t)
		for l := range r.ExpertBytes {
			r.ExpertBytes[l] = 1
		}
		budget := rapid.Int64Range(0, r.RoutedBytes()).Draw(t, "budget")
		bound := mustReplay(t, r, Belady, budget)
		all := mustReplay(t, r, Belady, r.RoutedBytes())
		for _, p := range cachepolicy.Names() {
			if got := mustReplay(t, r, p, budget); got.All.Hits > bound.All.Hits {
				t.Fatalf("%s: %d hits at %d slots, more than Belady's %d", p, got.All.Hits, budget, bound.All.Hits)
			}
			if got := mustReplay(t, r, p, r.RoutedBytes()); got.All != all.All {
				t.Fatalf("%s holding everything: %+v, belady %+v", p, got.All, all.All)
			}
		}
	})
}

func TestReplayRefusesUnknownPolicy(t *testing.T) {
	r := &Routing{Experts: 1, ExpertBytes: []int64{1}}
	const want = `policy "mru": want one of a2d, lru, layer-lru, layer-lfu, belady, stack-distance`
	if _, err := Replay(r, "mru", 1); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestLRUReproducesPublishedCurve(t *testing.T) {
	r, rows := qwenRouting(t), 0
	for _, row := range qwenCurve(t) {
		policies := map[string][]string{"lru": {cachepolicy.LRU, StackDistance}, "belady": {Belady}}[row.policy]
		for _, policy := range policies {
			got := mustReplay(t, r, policy, row.budget)
			cum, decode, read := 100*got.All.HitRate(), 100*got.Decode.HitRate(), float64(got.All.ReadBytes())/mib
			if math.Abs(cum-row.cum) > 0.001 || math.Abs(decode-row.decode) > 0.001 || math.Abs(read-row.readMiB) > 0.1 {
				t.Errorf("%s at %d MiB: %.3f %% in all, %.3f %% in decode, %.1f MiB read; published %.3f %.3f %.1f",
					policy, row.budget/mib, cum, decode, read, row.cum, row.decode, row.readMiB)
			}
			rows++
		}
	}
	if rows != 33 {
		t.Errorf("%d rows compared, want 11 budgets of 3", rows)
	}
}

// The trace's own residency column is that engine's LRU under 4000 MiB.
func TestLRUReproducesResidencyColumn(t *testing.T) {
	tr := qwenTrace(t)
	r, first := NewRouting(tr)
	wrong, rows := 0, 0
	resident := make([]bool, r.Experts)
	check := func(batch int) {
		to := len(tr.Picks)
		if batch+1 < len(first) {
			to = first[batch+1]
		}
		for i := first[batch]; i < to; i++ {
			rows++
			if p := &tr.Picks[i]; p.Hit != resident[p.Expert] {
				if wrong++; wrong < 5 {
					t.Errorf("row %d (layer %d expert %d): resident %v, the trace says %v", i+1, p.Layer, p.Expert, resident[p.Expert], p.Hit)
				}
			}
		}
	}
	_, err := ReplayObserved(r, cachepolicy.LRU, 4000*mib, func(batch, id int, hit bool) {
		ids := r.Batches[batch].IDs
		resident[ids[id]] = hit
		if id == len(ids)-1 {
			check(batch)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if wrong > 0 || rows != len(tr.Picks) {
		t.Errorf("%d of %d rows differ, %d rows in the trace", wrong, rows, len(tr.Picks))
	}
}

// Decode byte hit rates of the default policy and of its neighbours, in points,
// as they were found when the policy was chosen.
func TestA2DReproducesItsTable(t *testing.T) {
	r := qwenRouting(t)
	for _, row := range []struct {
		mib              int64
		lru, a2d, belady float64
	}{
		{250, 0.0, 18.7, 27.3},
		{500, 0.0, 29.7, 44.9},
		{750, 0.0, 37.7, 55.0},
		{1000, 37.3, 44.6, 62.4},
		{2000, 56.2, 64.2, 79.2},
		{3000, 70.4, 75.5, 87.7},
		{4000, 80.1, 83.7, 92.7},
		{8000, 95.9, 96.3, 97.1},
	} {
		for policy, want := range map[string]float64{cachepolicy.LRU: row.lru, cachepolicy.A2D: row.a2d, Belady: row.belady} {
			got := 100 * mustReplay(t, r, policy, row.mib*mib).Decode.ByteHitRate()
			if math.Abs(got-want) > 0.2 {
				t.Errorf("%s at %d MiB: %.2f %%, want %.1f", policy, row.mib, got, want)
			}
		}
	}
}

func TestLRUCurveEqualsReplayOnPublishedTrace(t *testing.T) {
	r := qwenRouting(t)
	c := NewLRUCurve(r)
	rng := rand.New(rand.NewPCG(7, 7))
	budgets := []int64{0, r.TokenCycle() - 1, r.TokenCycle(), r.RoutedBytes()}
	for range 20 {
		budgets = append(budgets, rng.Int64N(r.RoutedBytes()))
	}
	for _, b := range budgets {
		lru, at := mustReplay(t, r, cachepolicy.LRU, b), c.At(b)
		if at.All != lru.All || at.Decode != lru.Decode {
			t.Errorf("%d bytes: curve %+v, replayed %+v", b, at, lru)
		}
	}
	if got := math.Round(float64(r.TokenCycle()) / mib); got != 785 {
		t.Errorf("token cycle %v MiB, want 785", got)
	}
}
