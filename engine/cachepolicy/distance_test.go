package cachepolicy

import (
	"testing"

	"pgregory.net/rapid"
)

// The naive model is the definition: a list, most recent last.
func TestDistancesAgainstNaiveList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers, experts := rapid.IntRange(1, 4).Draw(t, "layers"), rapid.IntRange(1, 6).Draw(t, "experts")
		bytes := rapid.SliceOfN(rapid.Int64Range(1, 9), layers, layers).Draw(t, "bytes")
		d := NewDistances(experts, bytes)
		c := NewCollector(experts)
		var list, before []key
		for range rapid.IntRange(1, 80).Draw(t, "batches") { // several compactions
			layer := rapid.IntRange(0, layers-1).Draw(t, "layer")
			ids, _ := c.Distinct(rapid.SliceOfN(rapid.Int32Range(0, int32(experts-1)), 1, 6).Draw(t, "picks"))
			got := make([]int64, len(ids))
			d.Touch(layer, ids, got)
			for i, id := range ids {
				if want := naiveDistance(list, before, key{layer, id}, bytes); got[i] != want {
					t.Fatalf("layer %d expert %d: distance %d, want %d", layer, id, got[i], want)
				}
			}
			before = before[:0]
			for _, id := range ids {
				k := key{layer, id}
				before = append(before, k)
				for i := range list {
					if list[i] == k {
						list = append(list[:i], list[i+1:]...)
						break
					}
				}
				list = append(list, k)
			}
		}
	})
}

func naiveDistance(list, before []key, k key, bytes []int64) int64 {
	for _, b := range before {
		if b == k {
			return 0
		}
	}
	var sum int64
	for i := len(list) - 1; i >= 0; i-- {
		sum += bytes[list[i].layer]
		if list[i] == k {
			return sum
		}
	}
	return Never
}

func BenchmarkDistances(b *testing.B) {
	const layers, experts, used = 48, 128, 8
	trace := skewed(layers, experts, used, 64)
	bytes := make([]int64, layers)
	for l := range bytes {
		bytes[l] = 3 << 20
	}
	d, distance, lookups := NewDistances(experts, bytes), make([]int64, used), 0
	b.ReportAllocs()
	for b.Loop() {
		for _, token := range trace {
			for l, ids := range token {
				d.Touch(l, ids, distance)
				lookups += used
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(lookups), "ns/lookup")
}
