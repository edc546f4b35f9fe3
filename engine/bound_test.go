package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/bmoe/bmoe/engine/synth"
)

// topics generates 50 tokens on each of ten texts that share nothing, and
// returns what the process held at most over what it held before, the copied
// dense weights left out.
func topics(t testing.TB, model string, mb int) (most, budget, evicted int64) {
	t.Helper()
	debug.FreeOSMemory()
	before := readUsage().rss
	cfg := baseConfig(model)
	cfg.MoeStream, cfg.CacheMB, cfg.DenseWeights, cfg.LogitsHash, cfg.ReleaseMmap = true, mb, "anon", false, true
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before += s.Counters().DenseCopiedBytes
	for topic := range 10 {
		s.Clear()
		text := fmt.Sprintf("topic %d: %s", topic*topic, words(3+topic))
		_, err := s.Generate(context.Background(), Request{Text: text, Predict: 50, OnToken: func(Progress) {
			most = max(most, readUsage().rss-before)
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	c := s.Counters()
	return most, c.CacheBudgetBytes, c.Evictions
}

// BenchmarkCacheBound reports how far 500 tokens of changing topics took memory
// over a cache budget of 800 MiB. What context and buffers hold is what the same
// 500 tokens held beside a cache of half that, in which prompts take the same way.
func BenchmarkCacheBound(b *testing.B) {
	spec := synth.Default()
	spec.Type, spec.Embd, spec.FF = "q8_0", 1024, 512
	path := filepath.Join(b.TempDir(), "m.gguf")
	if _, err := synth.Write(context.Background(), path, spec, synth.Options{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		least, half, _ := topics(b, path, 400)
		most, budget, evicted := topics(b, path, 800)
		if evicted == 0 {
			b.Fatal("nothing was evicted: the cache was never full")
		}
		held := most - (least - half)
		over := 100 * float64(held-budget) / float64(budget)
		fmt.Printf("\nHeld at most %.1f MiB with a cache of %.1f MiB: %+.2f %%; context and buffers %.1f MiB\n\n", mibs(held), mibs(budget), over, mibs(least-half))
		b.ReportMetric(over, "%-over")
		if over > 1 {
			b.Errorf("%.2f %% over the budget", over)
		}
	}
}

func mibs(n int64) float64 { return float64(n) / (1 << 20) }
