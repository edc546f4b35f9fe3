package cachepolicy

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustNew(tb testing.TB, name string, layers, experts int, groups []int) Policy {
	tb.Helper()
	p, err := New(name, layers, experts, groups)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name            string
		layers, experts int
		groups          []int
		want            string
	}{
		{"mru", 1, 1, nil, "want one of a2d, lru, layer-lru, layer-lfu"},
		{LRU, 0, 4, nil, "want at least 1"},
		{LRU, 1 << 20, 1 << 20, nil, "at most"},
		{LRU, 2, 4, []int{0}, "groups of 1 layers given for 2"},
		{LRU, 2, 4, []int{0, 2}, "layer 1 is in group 2"},
	} {
		_, err := New(c.name, c.layers, c.experts, c.groups)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%q, %d, %d, %v) = %v, want an error with %q", c.name, c.layers, c.experts, c.groups, err, c.want)
		}
	}
}

// turn plays one decode batch with a budget of room slots and returns hits.
func turn(p Policy, layer int, ids []int32, held *int, room int) (hits int) {
	ones := make([]int32, len(ids))
	for i := range ones {
		ones[i] = 1
	}
	p.Touch(layer, ids, ones, 1, false)
	for _, id := range ids {
		if p.Resident(layer, id) {
			hits++
			continue
		}
		for *held >= room {
			l, e, ok := p.Victim(layer)
			if !ok {
				return hits
			}
			p.Remove(l, e)
			*held--
		}
		p.Insert(layer, id)
		*held++
	}
	return hits
}

// Below one token cycle a cyclic reference string gives LRU nothing at all and
// the other policies something: that is what they are for.
func TestCliffBelowOneCycle(t *testing.T) {
	const layers, experts, used, room = 8, 16, 2, 12 // a cycle is 16
	hits := map[string]int{}
	for _, name := range Names() {
		p := mustNew(t, name, layers, experts, nil)
		held := 0
		for range 50 {
			for l := range layers {
				hits[name] += turn(p, l, []int32{0, 1}, &held, room)
			}
		}
		if held > room {
			t.Errorf("%s holds %d, budget %d", name, held, room)
		}
	}
	if hits[LRU] != 0 {
		t.Errorf("lru: %d hits on a cycle longer than the cache, want 0", hits[LRU])
	}
	for _, name := range []string{A2D, LayerLRU, LayerLFU} {
		if hits[name] < 50*used*layers/4 {
			t.Errorf("%s: %d hits of %d lookups below one cycle, want at least a quarter", name, hits[name], 50*used*layers)
		}
	}
}

// Equal scores are given up oldest first.
func TestA2DTieGivesUpTheOldest(t *testing.T) {
	p := mustNew(t, A2D, 1, 8, nil)
	p.Touch(0, []int32{5, 2, 7}, []int32{1, 1, 1}, 1, false)
	for _, e := range []int32{2, 7, 5} { // insertion order does not matter
		p.Insert(0, e)
	}
	p.Release()
	var got []int32
	for {
		_, e, ok := p.Victim(0)
		if !ok {
			break
		}
		got = append(got, e)
		p.Remove(0, e)
	}
	if diff := cmp.Diff([]int32{5, 2, 7}, got); diff != "" {
		t.Errorf("victims (-want +got):\n%s", diff)
	}
}

func TestCollectorOrdersByLastUse(t *testing.T) {
	c := NewCollector(10)
	for range 2 { // buffers are clean the second time
		ids, counts := c.Distinct([]int32{3, 1, 3, 9, 1, 3, -1, 10})
		if diff := cmp.Diff([]int32{9, 1, 3}, ids); diff != "" {
			t.Errorf("ids (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int32{1, 2, 3}, counts); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}
}

// skewed is a seeded routing with locality: half of each token's experts stay.
func skewed(layers, experts, used, tokens int) [][][]int32 {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([][][]int32, tokens)
	for t := range out {
		out[t] = make([][]int32, layers)
		for l := range layers {
			ids := make([]int32, 0, used)
			seen := map[int32]bool{}
			if t > 0 {
				for _, e := range out[t-1][l][:used/2] {
					ids, seen[e] = append(ids, e), true
				}
			}
			for len(ids) < used {
				e := int32(float64(experts) * rng.Float64() * rng.Float64())
				if !seen[e] {
					ids, seen[e] = append(ids, e), true
				}
			}
			out[t][l] = ids
		}
	}
	return out
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	const layers, experts, used = 8, 64, 6
	trace := skewed(layers, experts, used, 40)
	for _, name := range Names() {
		p, held := mustNew(t, name, layers, experts, nil), 0
		ones := []int32{1, 1, 1, 1, 1, 1}
		play := func() {
			for _, token := range trace {
				for l, ids := range token {
					serveSlots(p, l, ids, ones, &held, 100)
				}
			}
		}
		play()
		if n := testing.AllocsPerRun(3, play); n != 0 {
			t.Errorf("%s: %v allocations a pass in steady state", name, n)
		}
	}
}

func serveSlots(p Policy, layer int, ids, ones []int32, held *int, room int) (misses int) {
	p.Touch(layer, ids, ones, 1, false)
	for _, id := range ids {
		if p.Resident(layer, id) {
			continue
		}
		misses++
		for *held >= room {
			l, e, ok := p.Victim(layer)
			if !ok {
				return misses
			}
			p.Remove(l, e)
			*held--
		}
		p.Insert(layer, id)
		*held++
	}
	return misses
}

// BenchmarkLookup reports the time of one lookup, its share of the turn's
// bookkeeping and of victims included, on a shape like Qwen3-30B-A3B's with a
// quarter of the experts held.
func BenchmarkLookup(b *testing.B) {
	const layers, experts, used = 48, 128, 8
	trace := skewed(layers, experts, used, 64)
	ones := []int32{1, 1, 1, 1, 1, 1, 1, 1}
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			p, held, misses, lookups := mustNew(b, name, layers, experts, nil), 0, 0, 0
			b.ReportAllocs()
			for b.Loop() {
				for _, token := range trace {
					for l, ids := range token {
						misses += serveSlots(p, l, ids, ones, &held, layers*experts/4)
						lookups += used
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(lookups), "ns/lookup")
			b.ReportMetric(100*float64(misses)/float64(lookups), "miss%")
		})
	}
}
