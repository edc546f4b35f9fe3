package engine

import (
	"context"
	"os"
	"testing"

	"github.com/bmoe/bmoe/planner/config"
)

func TestQuick(t *testing.T) {
	m := os.Getenv("QM")
	if m == "" {
		return
	}
	run := func(mod func(*config.Config)) *Result {
		c := config.Default()
		c.Model, c.Predict, c.CtxSize, c.LogitsHash, c.Threads = m, 96, 512, true, 2
		c.Repack = "off"
		c.IgnoreEOS = true
		mod(&c)
		s, err := Open(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Generate(context.Background(), Request{Text: "Once upon a time", Predict: 96})
		if err != nil {
			t.Fatal(err)
		}
		var ns int64
		for _, n := range r.TokenNS {
			ns += n
		}
		ct := s.Counters()
		t.Logf("%s %.1f t/s prefill %.3f hits %d/%d evict %d reads %d prefillLayers %d notes %v text %.60q", r.LogitsHash, float64(len(r.TokenNS))/float64(ns)*1e9, r.PrefillS, ct.Hits, ct.Lookups, ct.Evictions, ct.Reads, ct.PrefillLayers, s.Notes(), r.Text)
		return r
	}
	a := run(func(c *config.Config) {})
	for _, ov := range []bool{false, true} {
		for _, mb := range []int{0, 1, 3, 10, 100} {
			b := run(func(c *config.Config) { c.MoeStream = true; c.CacheMB = mb; c.Overlap = ov; c.DenseWeights = "anon" })
			if a.LogitsHash != b.LogitsHash {
				t.Errorf("differ at %d overlap %v", mb, ov)
			}
		}
	}
}
