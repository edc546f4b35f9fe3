package engine

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/counters"
	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner/config"
)

// modelDir holds the models of this test binary, made once.
var modelDir string

func TestMain(m *testing.M) {
	var err error
	if modelDir, err = os.MkdirTemp("", "bmoe-engine"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(modelDir)
	os.Exit(code)
}

// tiny is a model small enough for hundreds of runs: three layers of
// thirty-two experts, four used.
func tiny(arch, typ string) synth.Spec {
	s := synth.Default()
	s.Arch, s.Type = arch, typ
	s.Layers, s.Experts, s.Used, s.Embd, s.FF, s.Vocab = 3, 32, 4, 256, 256, 512
	return s
}

// makeModel writes the model once under a name.
func makeModel(t testing.TB, name string, s synth.Spec) string {
	t.Helper()
	path := filepath.Join(modelDir, name+".gguf")
	first := path
	if s.Shards > 1 {
		first = filepath.Join(modelDir, name+"-00001-of-0000"+string(rune('0'+s.Shards))+".gguf")
	}
	if _, err := os.Stat(first); err == nil {
		return first
	}
	if _, err := synth.Write(context.Background(), path, s, synth.Options{}); err != nil {
		t.Fatal(err)
	}
	return first
}

// storyModel upcycles the trained story model, if it is at hand.
func storyModel(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "..", "shared", "data", "stories260K")
	weights := filepath.Join(dir, "stories260K.bin")
	if _, err := os.Stat(weights); err != nil {
		t.Skipf("no trained weights at %s: the story model is left out", weights)
	}
	path := filepath.Join(modelDir, "story.gguf")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	u := synth.Upcycle{Weights: weights, Tokenizer: filepath.Join(dir, "tok512.bin"), Experts: 16, Used: 4, Noise: 0.05, Type: "q8_0", Seed: 1, Shards: 1}
	if _, err := synth.WriteUpcycled(context.Background(), path, u, synth.Options{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// outcome is what a run is compared by.
type outcome struct {
	hash   string
	tokens []int32
	c      counters.Counters
	cfg    config.Config
}

// baseConfig runs on one thread: a busy machine then only makes it slower, not
// slower by the length of every barrier.
func baseConfig(model string) config.Config {
	c := config.Default()
	c.Model, c.CtxSize, c.LogitsHash, c.Threads, c.Repack, c.IgnoreEOS = model, 1024, true, 1, "off", true
	return c
}

func generate(t testing.TB, cfg config.Config, prompt string, n int) outcome {
	t.Helper()
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := s.Generate(context.Background(), Request{Text: prompt, Predict: n})
	if err != nil {
		t.Fatal(err)
	}
	return outcome{r.LogitsHash, r.Tokens, s.Counters(), s.Config()}
}

// mib rounds bytes up to what --cache-mb takes.
func mib(bytes int64) int { return int((bytes + 1<<20 - 1) >> 20) }

// routedShare is a cache of that share of a model's experts, in MiB.
func routedShare(t testing.TB, model string, share float64) int {
	t.Helper()
	m, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	return mib(int64(share * float64(m.RoutedBytes())))
}

func words(n int) string { return strings.TrimSpace(strings.Repeat("the small red fox ran ", n)) }
