package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/trace"
)

func open(t *testing.T, cacheMB int) *Session {
	t.Helper()
	cfg := baseConfig(makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0")))
	cfg.MoeStream, cfg.CacheMB = true, cacheMB
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func turn(t *testing.T, s *Session, req Request) *Result {
	t.Helper()
	r, err := s.Generate(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Two turns in one session are one conversation: the same bits as the whole
// text at once, and of the second turn only what is new is computed.
func TestPrefixIsReused(t *testing.T) {
	s := open(t, 10)
	turn(t, s, Request{Text: "the small red fox", Predict: 1})
	again := turn(t, s, Request{Text: "the small red fox ran home", Whole: true, Predict: 24})
	if again.ReusedTokens < 4 || again.PromptTokens == 0 {
		t.Errorf("%d tokens reused, %d computed", again.ReusedTokens, again.PromptTokens)
	}
	fresh := turn(t, open(t, 10), Request{Text: "the small red fox ran home", Predict: 24})
	if got, want := again.Text, fresh.Text; got != want {
		t.Errorf("text after a kept prefix %q, from the beginning %q", got, want)
	}
}

// The cache stays warm from turn to turn.
func TestCacheIsWarmAcrossTurns(t *testing.T) {
	s := open(t, 1000)
	turn(t, s, Request{Text: "the small red fox", Predict: 24})
	before := s.Counters()
	s.Clear()
	turn(t, s, Request{Text: "the small red fox", Predict: 24})
	after := s.Counters()
	if after.Misses != before.Misses {
		t.Errorf("%d experts read again with everything cached", after.Misses-before.Misses)
	}
}

func TestResizeCache(t *testing.T) {
	s := open(t, 12)
	want := turn(t, s, Request{Text: "the small red fox", Predict: 32})
	for _, mb := range []int{4, 12, 1, 0, 30} {
		s.Clear()
		if err := s.ResizeCache(mb); err != nil {
			t.Fatal(err)
		}
		got := turn(t, s, Request{Text: "the small red fox", Predict: 32})
		if got.LogitsHash != want.LogitsHash {
			t.Errorf("after a resize to %d MiB the logits differ", mb)
		}
		c := s.Counters()
		if limit := max(int64(mb)<<20, 4<<20); c.CacheBudgetBytes > limit || c.CacheResidentBytes > c.CacheBudgetBytes {
			t.Errorf("%d MiB asked for: budget %d, resident %d", mb, c.CacheBudgetBytes, c.CacheResidentBytes)
		}
	}
}

func TestCancel(t *testing.T) {
	s := open(t, 4)
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	r, err := s.Generate(ctx, Request{Text: "the small red fox", Predict: 500, OnToken: func(Progress) {
		if n++; n == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(r.Tokens) < 5 || len(r.Tokens) > 8 {
		t.Fatalf("cancelled after 5 tokens: %d tokens, %v", len(r.Tokens), err)
	}
	s.Clear()
	turn(t, s, Request{Text: "the small red fox", Predict: 8})
}

// A model that changes under a run ends it, and says so.
func TestChangedFileIsDetected(t *testing.T) {
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	changes := map[string]func(path string) error{
		"truncated": func(p string) error { return os.Truncate(p, 1<<20) },
		"replaced":  func(p string) error { return os.Rename(p+".other", p) },
		"deleted":   os.Remove,
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			copyFile(t, model, path)
			copyFile(t, model, path+".other")
			cfg := baseConfig(path)
			cfg.MoeStream, cfg.CacheMB, cfg.DenseWeights = true, 4, "anon"
			s, err := Open(context.Background(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			turn(t, s, Request{Text: "the small", Predict: 4})
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			_, err = s.Generate(context.Background(), Request{Text: "red fox", Predict: 4})
			if err == nil || !strings.Contains(err.Error(), "m.gguf") {
				t.Errorf("got %v, want an error that names the file", err)
			}
		})
	}
}

func TestDenseModelIsRefused(t *testing.T) {
	cfg := baseConfig(filepath.Join(modelDir, "none.gguf"))
	cfg.MoeStream = true
	if _, err := Open(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "none.gguf") {
		t.Errorf("a missing model: %v", err)
	}
}

// What the session logs of its routing is what the trace file says.
func TestRoutingLogEqualsTrace(t *testing.T) {
	cfg := baseConfig(makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0")))
	cfg.MoeStream, cfg.CacheMB, cfg.RouteTrace = true, 4, filepath.Join(t.TempDir(), "route.csv")
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	turn(t, s, Request{Text: words(3), Predict: 12})
	got := s.Routing()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(cfg.RouteTrace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := trace.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Picks) != len(want.Picks) || len(got.Picks) == 0 {
		t.Fatalf("%d picks logged, %d in the file", len(got.Picks), len(want.Picks))
	}
	for i := range got.Picks {
		g, w := got.Picks[i], want.Picks[i]
		if g.Turn != w.Turn || g.Phase != w.Phase || g.Step != w.Step || g.Layer != w.Layer || g.Slot != w.Slot || g.Expert != w.Expert {
			t.Fatalf("pick %d: %+v logged, %+v in the file", i, g, w)
		}
	}
}
