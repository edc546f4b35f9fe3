package engine

import (
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/rpctest"
	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner/config"
)

// splitModel is three layers of about 100 MB of experts: a device capped at
// 600 MiB would hold all of it, at 250 MiB not.
func splitModel(t testing.TB) string {
	return makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
}

// Some layers on a device with their experts, the rest streamed: the bits of
// the resident model, in the prompt and in decode.
func TestSplitPlacementEqualsResident(t *testing.T) {
	srv := rpctest.Start(t)
	model := splitModel(t)
	tests := []struct {
		name     string
		layers   int
		override string
	}{
		{"output only", 1, ""},
		{"one layer", 2, ""},
		{"two layers", 3, ""},
		{"attention on the device, experts streamed", 4, `blk\.[012]\.ffn_.*_exps=CPU`},
		{"one layer's experts brought back", 4, `blk\.1\.ffn_(up|down|gate)_exps=CPU`},
	}
	for _, prompt := range []string{"a", words(37)} {
		want := generate(t, baseConfig(model), prompt, 24)
		for _, tt := range tests {
			for _, overlap := range []bool{false, true} {
				t.Run(tt.name, func(t *testing.T) {
					cfg := baseConfig(model)
					cfg.MoeStream, cfg.CacheMB, cfg.Overlap = true, routedShare(t, model, 0.2), overlap
					cfg.RPC, cfg.GPULayers, cfg.OverrideTensor = srv.At, tt.layers, tt.override
					got := generate(t, cfg, prompt, 24)
					if got.hash != want.hash {
						t.Errorf("logits differ from the resident model's")
					}
					if got.c.Misses == 0 || got.c.DevicePlacedBytes == 0 {
						t.Errorf("%d misses, %d bytes on the device", got.c.Misses, got.c.DevicePlacedBytes)
					}
				})
			}
		}
	}
}

func TestResidentOnADevice(t *testing.T) {
	srv := rpctest.Start(t)
	model := splitModel(t)
	cfg := baseConfig(model)
	want := generate(t, cfg, words(37), 16)
	cfg.RPC, cfg.GPULayers = srv.At, 3
	if got := generate(t, cfg, words(37), 16); got.hash != want.hash {
		t.Error("logits differ from the host's")
	}
}

func TestPlacementErrors(t *testing.T) {
	srv := rpctest.Start(t)
	model := splitModel(t)
	tests := []struct {
		edit func(*config.Config)
		want string
	}{
		{func(c *config.Config) { c.RPC = "" }, "--rpc"},
		{func(c *config.Config) { c.OverrideTensor = `blk\.2\.ffn_down_exps=CPU` }, "blk.2.ffn_down_exps"},
		{func(c *config.Config) { c.OverrideTensor = "exps=RPC0" }, "PATTERN=CPU"},
		{func(c *config.Config) { c.OverrideTensor = "(=CPU" }, "--override-tensor"},
		{func(c *config.Config) { c.DeviceSplit = "RPC0" }, "NAME=LAYERS"},
		{func(c *config.Config) { c.DeviceSplit = "RPC7=2" }, "RPC7"},
		{func(c *config.Config) { c.DeviceSplit = "RPC0=1,RPC0=1" }, "RPC0 is named twice"},
		{func(c *config.Config) { c.DeviceSplit = "RPC0=3" }, "counts 3 layers, --gpu-layers places 2"},
		{func(c *config.Config) { c.GPULayers, c.DeviceSplit = 99, "RPC0=2" }, "--gpu-layers places 4"},
		{func(c *config.Config) { c.GPULayers, c.DeviceSplit = 0, "RPC0=2" }, "--gpu-layers"},
		{func(c *config.Config) { c.GPULayers = 4 }, "--no-moe-stream"},
	}
	for _, tt := range tests {
		cfg := baseConfig(model)
		cfg.MoeStream, cfg.CacheMB, cfg.RPC, cfg.GPULayers = true, 8, srv.At, 2
		tt.edit(&cfg)
		if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q in it", err, tt.want)
		}
	}
}

// A server that takes no more is an error that says so, not a crash, also after
// a turn that was broken off: llama.cpp logs that as an error too.
func TestPlacementLargerThanTheDevice(t *testing.T) {
	srv := rpctest.Start(t)
	s := open(t, 4)
	if _, err := s.Generate(t.Context(), Request{Text: "red fox", Predict: 500, OnToken: func(Progress) { s.Cancel() }}); err == nil {
		t.Error("a turn was not broken off")
	}
	cfg := baseConfig(splitModel(t))
	cfg.MoeStream, cfg.CacheMB, cfg.RPC, cfg.GPULayers, cfg.RPCMB = true, 8, srv.At, 3, 1
	if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), srv.At) || !strings.Contains(err.Error(), "place fewer (--gpu-layers") {
		t.Errorf("20 MB of layers were put on a device of 1 MiB: %v; want the server's address and what to do", err)
	}
}

// cappedSpec is a model of 855 MB.
func cappedSpec() synth.Spec {
	s := synth.Default()
	s.Arch, s.Type = "qwen3moe", "q8_0"
	s.Layers, s.Experts, s.Used, s.Embd, s.FF, s.Vocab = 8, 64, 4, 512, 1024, 512
	return s
}

func TestServerLostUnderPlacedLayers(t *testing.T) {
	srv := rpctest.Start(t)
	cfg := baseConfig(splitModel(t))
	cfg.MoeStream, cfg.CacheMB, cfg.RPC, cfg.GPULayers = true, 8, srv.At, 2
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	srv.Kill()
	if _, err := s.Generate(t.Context(), Request{Text: words(20), Predict: 4}); err == nil || !strings.Contains(err.Error(), srv.At) {
		t.Errorf("error %v, want one that names %s", err, srv.At)
	}
}
