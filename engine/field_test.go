package engine

import (
	"fmt"
	"testing"

	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/planner/config"
)

// Named, as the tests of docs/reliability.md are, for what users of other
// programs reported.

// A cache smaller than what one token needs still runs, with the same bits.
func TestFieldBudgetBelowATokenWorks(t *testing.T) {
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	m, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	want := generate(t, baseConfig(model), "Once upon a time", 24)
	for _, policy := range config.CachePolicies {
		for _, mb := range []int{0, 1} {
			cfg := baseConfig(model)
			cfg.MoeStream, cfg.CacheMB, cfg.CachePolicy = true, mb, policy
			got := generate(t, cfg, "Once upon a time", 24)
			if got.hash != want.hash {
				t.Errorf("%s, %d MiB: logits differ from the resident model's", policy, mb)
			}
			if got.c.CacheBudgetBytes >= m.TokenCycle(0) {
				t.Errorf("%s, %d MiB: the cache took %d bytes, a token needs %d: nothing was tested", policy, mb, got.c.CacheBudgetBytes, m.TokenCycle(0))
			}
		}
	}
}

// Long generations have the resident model's bits at budgets that divide
// nothing evenly.
func TestFieldLongGenerationsAreIdenticalAtOddBudgets(t *testing.T) {
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	const long = 300
	want := generate(t, baseConfig(model), "a", long)
	for i, mb := range []int{3, 5, 7} {
		cfg := baseConfig(model)
		cfg.MoeStream, cfg.CacheMB, cfg.CachePolicy = true, mb, config.CachePolicies[i]
		got := generate(t, cfg, "a", long)
		if got.hash != want.hash || fmt.Sprint(got.tokens) != fmt.Sprint(want.tokens) {
			t.Errorf("%s, %d MiB: the generation differs from the resident model's", cfg.CachePolicy, mb)
		}
		if got.c.Evictions == 0 || got.c.Hits == 0 {
			t.Errorf("%s, %d MiB: %d evictions, %d hits", cfg.CachePolicy, mb, got.c.Evictions, got.c.Hits)
		}
	}
}

// Experts far below 512 KiB stream: slices of two kilobytes, under the drive's
// alignment.
func TestFieldSmallExpertsStream(t *testing.T) {
	spec := tiny("qwen3moe", "q8_0")
	spec.Embd, spec.FF = 64, 32
	model := makeModel(t, "small-experts", spec)
	m, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.ExpertTensors[0].SliceBytes; n >= 4096 {
		t.Fatalf("slices of %d bytes", n)
	}
	want := generate(t, baseConfig(model), "Once upon a time", 48)
	cfg := baseConfig(model)
	cfg.MoeStream, cfg.CacheMB = true, 0
	got := generate(t, cfg, "Once upon a time", 48)
	if got.hash != want.hash {
		t.Error("logits differ from the resident model's")
	}
	if got.c.Misses == 0 || got.c.BytesRead == 0 {
		t.Errorf("%d misses, %d bytes read: nothing was streamed", got.c.Misses, got.c.BytesRead)
	}
}

// A prompt is seen to begin, before its first pass is through: on a slow
// machine that pass may take a minute.
func TestFieldProgressIsVisibleOnASlowMachine(t *testing.T) {
	s := open(t, 4)
	type step struct{ done, total int }
	var prompt []step
	tokens := 0
	turn(t, s, Request{
		Text: words(40), Predict: 6,
		OnPrompt: func(done, total int) { prompt = append(prompt, step{done, total}) },
		OnToken:  func(Progress) { tokens++ },
	})
	if len(prompt) < 2 || prompt[0].done != 0 || prompt[0].total == 0 {
		t.Fatalf("the prompt's progress is %v, want it to begin with 0 of all", prompt)
	}
	if last := prompt[len(prompt)-1]; last.done != last.total {
		t.Errorf("the prompt's progress ends with %v", last)
	}
	if tokens != 5 {
		t.Errorf("%d of 5 decoded tokens were told of", tokens)
	}
}
