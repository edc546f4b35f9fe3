package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/counters"
	"github.com/bmoe/bmoe/engine/internal/rpcdev"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/engine/rpctest"
	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner/config"
)

// prompt600 is a prompt of about 600 tokens for the synthetic vocabularies: one
// that repeats itself, or one that does not.
func prompt600(t testing.TB, cfg config.Config, varied bool) string {
	t.Helper()
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for text := ""; ; {
		if varied {
			text += string(rune('a'+rng.IntN(26))) + string(rune(' '+rng.IntN(90)))
		} else {
			text += words(1) + " "
		}
		tokens, err := s.model.Tokenize(text, true, false)
		if err != nil {
			t.Fatal(err)
		}
		if len(tokens) >= 600 {
			return text
		}
	}
}

func deviceConfig(t testing.TB, model string, srv *rpctest.Server) config.Config {
	cfg := baseConfig(model)
	cfg.MoeStream, cfg.CacheMB = true, routedShare(t, model, 0.3)
	cfg.RPC, cfg.PrefillDevice, cfg.PrefillVerify = srv.At, "RPC0", false
	return cfg
}

// crowded is a model of so few experts that a varied prompt picks every one.
func crowded() synth.Spec {
	s := tiny("qwen3moe", "q8_0")
	s.Experts = 8
	return s
}

// sparse is a model of so many experts that a prompt is expected to leave many
// of a layer's unpicked.
func sparse() synth.Spec {
	s := tiny("qwen3moe", "q8_0")
	s.Experts, s.Used, s.Embd, s.FF = 512, 1, 128, 32
	return s
}

// A prompt computed on a device gives the host's bits: with one slot and two,
// where every expert is picked, where some are and a second slot reads whole
// layers ahead, and where so few would be that nothing is read unpicked; held
// for the session or in turn with the cache; waited for one by one or not.
func TestDevicePrefillEqualsHost(t *testing.T) {
	srv := rpctest.Start(t)
	for _, tt := range []devicePrompt{{"all", crowded(), true, true}, {"some", tiny("qwen3moe", "q8_0"), false, true}, {"routed", sparse(), false, false}} {
		path := makeModel(t, fmt.Sprintf("qwen3moe-of-%d", tt.spec.Experts), tt.spec)
		base := baseConfig(path)
		text := prompt600(t, base, tt.varied)
		want := generate(t, base, text, 8)
		m, err := model.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 8 {
			slots, demand, overlap := 1+n%2, n/2%2 == 1, n/4 == 1
			t.Run(fmt.Sprintf("%s,slots=%d,demand=%v,overlap=%v", tt.name, slots, demand, overlap), func(t *testing.T) {
				cfg := deviceConfig(t, path, srv)
				cfg.PrefillSlots, cfg.SlotsOnDemand, cfg.Overlap = slots, demand, overlap
				got := generate(t, cfg, text, 8)
				if got.hash != want.hash {
					t.Errorf("logits differ from the host's")
				}
				tt.check(t, &got.c, m, slots == 2)
			})
		}
	}
}

// devicePrompt is a model and a prompt: whether the prompt varies enough to
// pick every expert, and whether a layer is worth reading before it is routed.
type devicePrompt struct {
	name          string
	spec          synth.Spec
	varied, ahead bool
}

// check asks that experts were copied to the device and which were read.
func (p *devicePrompt) check(t *testing.T, c *counters.Counters, m *model.Model, second bool) {
	t.Helper()
	if c.BytesToDevice == 0 || c.PrefillLayers == 0 {
		t.Errorf("%d bytes to the device, %d layers through a slot", c.BytesToDevice, c.PrefillLayers)
	}
	if ahead := c.PrefillAhead > 0; ahead != (p.ahead && second) {
		t.Errorf("%d layers read ahead", c.PrefillAhead)
	}
	if all := c.BytesCold == m.RoutedBytes(); all != p.varied {
		t.Errorf("%d bytes of experts were picked of %d", c.BytesCold, m.RoutedBytes())
	}
	picked := c.BytesCold + c.BytesReread
	if unpicked := c.BytesRead > picked; unpicked != (p.ahead && second) {
		t.Errorf("%d bytes were read, %d of them of experts that were picked", c.BytesRead, picked)
	}
}

// The counter is what crossed the link, not what was meant to.
func TestBytesToDeviceCrossTheLink(t *testing.T) {
	srv := rpctest.Start(t)
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cfg := deviceConfig(t, model, srv)
	text := words(40)
	before := int64(0)
	if s := rpcdev.Known(srv.At); s != nil { // an earlier test's server had this port
		before = s.Link.Sent()
	}
	got := generate(t, cfg, text, 2)
	sent := rpcdev.Known(srv.At).Link.Sent() - before
	if got.c.BytesToDevice == 0 || sent < got.c.BytesToDevice || sent > 4*got.c.BytesToDevice {
		t.Errorf("%d bytes of experts counted, %d bytes of tensors sent", got.c.BytesToDevice, sent)
	}
}

// Prompts narrower than --prefill-min-tokens stay on the host.
func TestPrefillMinTokens(t *testing.T) {
	srv := rpctest.Start(t)
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cfg := deviceConfig(t, model, srv)
	want := generate(t, baseConfig(model), words(10), 4)
	for least, device := range map[int]bool{8: true, 4096: false} {
		cfg.PrefillMinTokens = least
		got := generate(t, cfg, words(10), 4)
		if got.hash != want.hash || got.c.BytesToDevice > 0 != device {
			t.Errorf("--prefill-min-tokens %d: hash %s (want %s), %d bytes to the device", least, got.hash, want.hash, got.c.BytesToDevice)
		}
	}
}

func TestVerifyKeepsADeviceThatAgrees(t *testing.T) {
	srv := rpctest.Start(t)
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cfg := deviceConfig(t, model, srv)
	cfg.PrefillVerify = true
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if notes := strings.Join(s.Notes(), "\n"); !strings.Contains(notes, "agrees with the host on 31 of 31") {
		t.Errorf("notes: %s", notes)
	}
	if c := s.Counters(); c.Lookups != 0 || c.BytesToDevice != 0 || c.BytesRead != 0 {
		t.Errorf("the check was counted: %+v", c)
	}
	r, err := s.Generate(t.Context(), Request{Text: words(40), Predict: 4})
	if err != nil {
		t.Fatal(err)
	}
	if want := generate(t, baseConfig(model), words(40), 4); r.LogitsHash != want.hash {
		t.Error("logits differ from the host's after the check")
	}
}

// A text that needs a wider graph than the session computes is no evidence: the
// device is kept, used, and said to be unproven.
func TestVerifyThatCannotRunKeepsTheDevice(t *testing.T) {
	srv := rpctest.Start(t)
	path := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cfg := deviceConfig(t, path, srv)
	cfg.PrefillVerify, cfg.UBatchSize = true, 48
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if notes := strings.Join(s.Notes(), "\n"); !strings.Contains(notes, "RPC0 was not compared with the host: ") || !strings.Contains(notes, "--ubatch") {
		t.Errorf("notes: %s", notes)
	}
	r, err := s.Generate(t.Context(), Request{Text: words(40), Predict: 4})
	if err != nil {
		t.Fatal(err)
	}
	base := baseConfig(path)
	base.UBatchSize = 48
	if want := generate(t, base, words(40), 4); r.LogitsHash != want.hash || s.Counters().BytesToDevice == 0 {
		t.Errorf("hash %s, the host's %s; %d bytes to the device", r.LogitsHash, want.hash, s.Counters().BytesToDevice)
	}
}
