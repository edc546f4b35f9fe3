package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/internal/rpcdev"
	"github.com/bmoe/bmoe/engine/rpctest"
	"github.com/bmoe/bmoe/planner/config"
)

// prompt600 is a prompt of about 600 tokens for the synthetic vocabularies.
func prompt600(t testing.TB, cfg config.Config) string {
	t.Helper()
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := 1; ; n++ {
		text := words(n)
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

// A prompt computed on a device gives the host's bits: with one slot and two,
// only the picked experts read or whole layers, waited for one by one or not.
func TestDevicePrefillEqualsHost(t *testing.T) {
	srv := rpctest.Start(t)
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	base := baseConfig(model)
	text := prompt600(t, base)
	want := generate(t, base, text, 8)
	for _, slots := range []int{1, 2} {
		for _, demand := range []bool{false, true} {
			for _, overlap := range []bool{false, true} {
				t.Run(fmt.Sprintf("slots=%d,demand=%v,overlap=%v", slots, demand, overlap), func(t *testing.T) {
					cfg := deviceConfig(t, model, srv)
					cfg.PrefillSlots, cfg.SlotsOnDemand, cfg.Overlap = slots, demand, overlap
					got := generate(t, cfg, text, 8)
					if got.hash != want.hash {
						t.Errorf("logits differ from the host's")
					}
					if got.c.BytesToDevice == 0 || got.c.PrefillLayers == 0 {
						t.Errorf("%d bytes to the device, %d layers through a slot", got.c.BytesToDevice, got.c.PrefillLayers)
					}
					if ahead := got.c.PrefillAhead > 0; ahead != (slots == 2) {
						t.Errorf("%d layers read ahead with %d slots", got.c.PrefillAhead, slots)
					}
				})
			}
		}
	}
}

// The counter is what crossed the link, not what was meant to.
func TestBytesToDeviceCrossTheLink(t *testing.T) {
	srv := rpctest.Start(t)
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cfg := deviceConfig(t, model, srv)
	text := words(40)
	before := int64(0)
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
