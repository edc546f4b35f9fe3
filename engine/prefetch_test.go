package engine

import (
	"testing"

	"github.com/bmoe/bmoe/planner/config"
)

// Experts that are read on a guess, right or wrong, change no bit: under every
// policy, by one lane or several, with a router that has a bias and one that has
// none. Without overlap nothing is guessed.
func TestPrefetchEqualsResident(t *testing.T) {
	for _, arch := range []string{"qwen3moe", "gpt-oss"} {
		spec := tiny(arch, "q8_0")
		spec.Layers = 8
		model := makeModel(t, "prefetch-"+arch, spec)
		base := baseConfig(model)
		base.RandomTokens = 1 // text that falls into a loop has few misses to guess
		want := generate(t, base, "Once upon a time", steps)
		for i, policy := range config.CachePolicies {
			t.Run(arch+"/"+policy, func(t *testing.T) {
				cfg := base
				cfg.MoeStream, cfg.CachePolicy, cfg.IOThreads = true, policy, 1+i
				cfg.CacheMB = routedShare(t, model, 0.3)
				got := generate(t, cfg, "Once upon a time", steps)
				if got.hash != want.hash {
					t.Errorf("logits differ from the resident model's")
				}
				wrong := got.c.PrefetchReads - got.c.PrefetchReadsUsed
				if got.c.PrefetchReadsUsed == 0 || wrong == 0 {
					t.Errorf("%d slices read on a right guess, %d on a wrong one: both were to be tested", got.c.PrefetchReadsUsed, wrong)
				}
				for _, off := range []*bool{&cfg.ExpertPrefetch, &cfg.Overlap} {
					*off = false
					if got := generate(t, cfg, "Once upon a time", steps); got.hash != want.hash || got.c.PrefetchReads > 0 {
						t.Errorf("turned off: %d slices read on a guess, same bits: %v", got.c.PrefetchReads, got.hash == want.hash)
					}
				}
			})
		}
	}
}
