package trace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func collect(l *Log) (out []Batch) {
	l.Each(func(b Batch) {
		b.Picks = append([]int32(nil), b.Picks...)
		out = append(out, b)
	})
	return out
}

func TestLogKeepsBatches(t *testing.T) {
	l := NewLog(64, []int64{10, 20}, 100)
	ids := []int32{3, 63, 3, 1}
	l.Add(0, 0, ids, 2, true)
	l.Add(0, 1, []int32{5, 6}, 1, true)
	ids[0] = 9 // the caller's buffer is its own
	l.Add(1, 0, ids[:2], 1, false)
	want := []Batch{
		{Turn: 0, Layer: 0, Tokens: 2, Prompt: true, Picks: []int32{3, 63, 3, 1}},
		{Turn: 0, Layer: 1, Tokens: 1, Prompt: true, Picks: []int32{5, 6}},
		{Turn: 1, Layer: 0, Tokens: 1, Picks: []int32{9, 63}},
	}
	if diff := cmp.Diff(want, collect(l)); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if l.Full() {
		t.Error("full after 8 of 100 picks")
	}
}

func TestLogStopsAtItsLimit(t *testing.T) {
	l := NewLog(8, []int64{1}, 5)
	l.Add(0, 0, []int32{1, 2, 3}, 1, false)
	l.Add(0, 0, []int32{1, 2, 3}, 1, false) // would be 6
	l.Add(0, 0, []int32{1}, 1, false)       // would fit, but there is a hole before it
	if got := len(collect(l)); got != 1 || !l.Full() {
		t.Errorf("%d batches, full %v; want 1, true", got, l.Full())
	}
}

func TestLogSpansChunks(t *testing.T) {
	l := NewLog(256, []int64{1}, 1<<20)
	ids := make([]int32, 7)
	for n := range 3 * logChunk / len(ids) {
		ids[0] = int32(n % 256)
		l.Add(0, 0, ids, 1, false)
	}
	for n, b := range collect(l) {
		if b.Picks[0] != int32(n%256) || len(b.Picks) != 7 {
			t.Fatalf("batch %d: %v", n, b.Picks)
		}
	}
	if n := testing.AllocsPerRun(1000, func() { l.Add(0, 0, ids, 1, false) }); n != 0 {
		t.Errorf("%v allocations a batch in steady state", n)
	}
}
