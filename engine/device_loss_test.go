package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine/internal/rpcdev"
	"github.com/bmoe/bmoe/engine/internal/rpclink"
	"github.com/bmoe/bmoe/engine/rpctest"
	"github.com/bmoe/bmoe/planner/config"
)

// openDevice opens a session that computes prompts in several graphs on the
// server's device.
func openDevice(t *testing.T, srv *rpctest.Server, edit func(*config.Config)) (*Session, string) {
	t.Helper()
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cfg := deviceConfig(t, model, srv)
	cfg.UBatchSize = 128
	edit(&cfg)
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, model
}

// inThirdGraph calls f once, while the third graph of a prompt is computed.
func inThirdGraph(s *Session, f func()) {
	graphs, done := 0, false
	s.stream.Trace(func(layer int, _ []int32, _, _ int, _ func(int32) bool) {
		if layer == 0 {
			graphs++
		}
		if graphs == 3 && layer == 1 && !done {
			done = true
			f()
		}
	})
}

func TestServerKilledInAPrompt(t *testing.T) {
	for _, effort := range []bool{true, false} {
		srv := rpctest.Start(t)
		s, model := openDevice(t, srv, func(c *config.Config) { c.PrefillBestEffort = effort })
		inThirdGraph(s, srv.Kill)
		r, err := s.Generate(t.Context(), Request{Text: words(60), Predict: 6})
		if !effort {
			var lost *rpclink.LostError
			if !errors.As(err, &lost) || !strings.Contains(err.Error(), srv.At) || !strings.Contains(err.Error(), "--prefill-best-effort") {
				t.Errorf("error %v, want one that names %s and what to type", err, srv.At)
			}
			continue
		}
		if err != nil {
			t.Fatalf("best effort: %v", err)
		}
		base := baseConfig(model)
		base.UBatchSize = 128
		if want := generate(t, base, words(60), 6); r.LogitsHash != want.hash {
			t.Error("best effort: logits differ from the host's")
		}
		if s.Counters().BytesToDevice == 0 || !strings.Contains(strings.Join(s.Notes(), "\n"), srv.At) {
			t.Errorf("%d bytes to the device, notes %q", s.Counters().BytesToDevice, s.Notes())
		}
		s.Clear()
		if _, err := s.Generate(t.Context(), Request{Text: words(20), Predict: 2}); err != nil {
			t.Errorf("the turn after: %v", err)
		}
	}
}

func TestServerThatHangsIsLost(t *testing.T) {
	defer func(d time.Duration) { rpcdev.Timeout = d }(rpcdev.Timeout)
	rpcdev.Timeout = 3 * time.Second
	srv := rpctest.Start(t)
	s, _ := openDevice(t, srv, func(*config.Config) {})
	inThirdGraph(s, func() { _ = srv.Signal(syscall.SIGSTOP) })
	_, err := s.Generate(t.Context(), Request{Text: words(60), Predict: 2})
	var lost *rpclink.LostError
	if !errors.As(err, &lost) {
		t.Errorf("error %v, want a lost server", err)
	}
}

// Nobody waits out the time-out of a server that hangs in a run that was
// interrupted, be it in a prompt or in layers that lie there.
func TestInterruptBesideAServerThatHangs(t *testing.T) {
	for _, placed := range []bool{false, true} {
		srv := rpctest.Start(t)
		s, _ := openDevice(t, srv, func(c *config.Config) {
			if placed {
				c.PrefillDevice, c.GPULayers = "none", 2
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		var began time.Time
		inThirdGraph(s, func() {
			_ = srv.Signal(syscall.SIGSTOP)
			began = time.Now()
			time.AfterFunc(200*time.Millisecond, cancel)
		})
		_, err := s.Generate(ctx, Request{Text: words(60), Predict: 2})
		if err == nil || ctx.Err() == nil {
			t.Errorf("placed %v: %v", placed, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("placed %v: the interrupt took %s", placed, took)
		}
		srv.Kill()
		_ = s.Close()
		cancel()
	}
}

// Memory that is there at the load may be gone at a prompt's turn: that prompt
// is the host's, the next one tries again.
func TestNoRoomOnTheDeviceAtItsTurn(t *testing.T) {
	srv := rpctest.Start(t)
	s, model := openDevice(t, srv, func(c *config.Config) { c.PrefillBestEffort, c.SlotsOnDemand = true, true })
	link := rpcdev.Known(srv.At).Link
	link.Limit(1)
	base := baseConfig(model)
	base.UBatchSize = 128
	want := generate(t, base, words(60), 4)
	for _, turn := range []struct {
		limit  int64
		device bool
	}{{1, false}, {0, true}, {1, false}} {
		link.Limit(turn.limit)
		s.Clear()
		before := s.Counters().BytesToDevice
		r, err := s.Generate(t.Context(), Request{Text: words(60), Predict: 4})
		if err != nil {
			t.Fatal(err)
		}
		if r.LogitsHash != want.hash {
			t.Errorf("limit %d: logits differ from the host's", turn.limit)
		}
		if used := s.Counters().BytesToDevice > before; used != turn.device {
			t.Errorf("limit %d: device used: %v", turn.limit, used)
		}
		if held := link.Held(); held > 1<<20 {
			t.Errorf("limit %d: the device still holds %d bytes after its turn", turn.limit, held)
		}
	}
	if notes := strings.Join(s.Notes(), "\n"); !strings.Contains(notes, "the host computed a prompt") {
		t.Errorf("notes %q", notes)
	}
}

// A server that is reached by an IPv6 address is one like any other.
func TestServerOnIPv6(t *testing.T) {
	srv := rpctest.Start(t)
	at := rpctest.Relay(t, srv.At)
	s, model := openDevice(t, &rpctest.Server{At: at}, func(*config.Config) {})
	r, err := s.Generate(t.Context(), Request{Text: words(60), Predict: 4})
	if err != nil {
		t.Fatal(err)
	}
	base := baseConfig(model)
	base.UBatchSize = 128
	if want := generate(t, base, words(60), 4); r.LogitsHash != want.hash || s.Counters().BytesToDevice == 0 {
		t.Errorf("%s: hash %s, the host's %s; %d bytes to the device", at, r.LogitsHash, want.hash, s.Counters().BytesToDevice)
	}
}

func TestNoRoomForAPromptNamesTheServer(t *testing.T) {
	srv := rpctest.Start(t)
	cfg := deviceConfig(t, makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0")), srv)
	cfg.PrefillVerify, cfg.RPCMB = true, 1
	if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "["+srv.At+"]") || !strings.Contains(err.Error(), "raise --rpc-mb") {
		t.Errorf("error %v, want the server's address and what to do", err)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	srv := rpctest.Start(t)
	srv.Kill()
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cfg := deviceConfig(t, model, srv)
	if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), srv.At) || !strings.Contains(err.Error(), "ggml-rpc-server") {
		t.Errorf("error %v", err)
	}
	cfg.PrefillBestEffort = true
	got := generate(t, cfg, words(20), 2)
	if want := generate(t, baseConfig(model), words(20), 2); got.hash != want.hash {
		t.Error("best effort without a server: logits differ from the host's")
	}
}

// corrupting forwards to a server and changes one byte in so many of q8_0
// weights by some bits; every 34th is never a block's scale.
func corrupting(t *testing.T, to string, every int, bits byte) string {
	t.Helper()
	return rpctest.Listen(t, func(c net.Conn) {
		s, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer s.Close()
		go func() { _, _ = io.Copy(c, s) }()
		for corrupt(c, s, every, bits) == nil {
		}
	})
}

func corrupt(from io.Reader, to io.Writer, every int, bits byte) error {
	head := make([]byte, 9)
	if _, err := io.ReadFull(from, head); err != nil {
		return err
	}
	body := make([]byte, binary.LittleEndian.Uint64(head[1:]))
	if _, err := io.ReadFull(from, body); err != nil {
		return err
	}
	const setTensor = 6
	const q8 = 8 // the tensor's type, behind its id
	if head[0] == setTensor && len(body) > 4096 && body[8] == q8 {
		for i := 512; i < len(body); i += every {
			body[i] ^= bits
		}
	}
	_, err := to.Write(append(head, body...))
	return err
}

func TestVerifyRefusesADeviceThatComputesSomethingElse(t *testing.T) {
	srv := rpctest.Start(t)
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cfg := deviceConfig(t, model, &rpctest.Server{At: corrupting(t, srv.At, 3, 0x80)})
	cfg.PrefillVerify = true
	if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "next tokens agree") {
		t.Errorf("error %v", err)
	}
	cfg.PrefillBestEffort = true
	got := generate(t, cfg, words(40), 4)
	if want := generate(t, baseConfig(model), words(40), 4); got.hash != want.hash || got.c.BytesToDevice != 0 {
		t.Errorf("best effort: hash %s, want the host's %s; %d bytes to the device", got.hash, want.hash, got.c.BytesToDevice)
	}
}

// A device that agrees on the next tokens and is further off than a backend may
// be is used where the caller asked for it, with a note, and not where a plan
// did, which sets best effort.
func TestVerifyLeavesAnInexactDeviceToTheCaller(t *testing.T) {
	srv := rpctest.Start(t)
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cfg := deviceConfig(t, model, &rpctest.Server{At: corrupting(t, srv.At, 34, 0x08)})
	cfg.PrefillVerify = true
	for _, planned := range []bool{false, true} {
		cfg.PrefillBestEffort = planned
		s, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(s.Notes(), "\n")
		t.Log(notes)
		want := "is used because it was asked for"
		if planned {
			want = "--prefill-device RPC0 without --prefill-best-effort uses it all the same"
		}
		if used := s.Config().PrefillDevice == "RPC0"; used == planned || !strings.Contains(notes, want) {
			t.Errorf("planned %v: device used %v, notes %s", planned, used, notes)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDeviceExclusions(t *testing.T) {
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	tests := []struct {
		edit func(*config.Config)
		want string
	}{
		{func(c *config.Config) { c.MoeStream = false }, "--moe-stream"},
		{func(c *config.Config) { c.GPULayers = 1 }, "--gpu-layers"},
		{func(c *config.Config) { c.Repack = "on" }, "--no-repack"},
		{func(c *config.Config) {}, "no device is called"},
	}
	for _, tt := range tests {
		cfg := baseConfig(model)
		cfg.MoeStream, cfg.CacheMB, cfg.PrefillDevice = true, 8, "Nonesuch0"
		tt.edit(&cfg)
		if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q in it", err, tt.want)
		}
	}
}
