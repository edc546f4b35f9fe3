package engine

import (
	"os"
	"testing"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/internal/rpcdev"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/engine/rpctest"
)

// The capacity fitter fills a device that is capped below the model; what it
// leaves is streamed, and the bits are the resident model's. What the fitter
// projected is what the server then holds.
func TestFittedPlacementIsLoadedAsProjected(t *testing.T) {
	srv := rpctest.Start(t)
	spec := tiny("qwen3moe", "q8_0")
	spec.Layers = 6
	path := makeModel(t, "qwen3moe-six", spec)
	m, err := model.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for _, cap := range []int{4, 16, 24, 40, 200} {
		cfg := baseConfig(path)
		cfg.RPC, cfg.RPCMB, cfg.UBatchSize = srv.At, cap, 128
		p, err := device.Place(t.Context(), m, cfg, nil)
		if err != nil {
			t.Logf("%d MiB: %v", cap, err)
			continue
		}
		seen[p.HostExperts] = true
		share := p.Shares[0]
		t.Logf("%d MiB: %d layers, overrides %q, device model %d context %d compute %d, host experts %d dense %d", cap, p.GPULayers, p.Overrides, share.Model, share.Context, share.Compute, p.HostExperts, p.HostDense)
		if p.HostExperts < 0 || p.HostExperts > m.RoutedBytes() {
			t.Errorf("%d bytes of experts left on the host of %d", p.HostExperts, m.RoutedBytes())
		}
		if p.GPULayers == 0 || p.HostExperts == 0 {
			continue
		}
		want := generate(t, cfg, words(37), 16)
		cfg.MoeStream, cfg.CacheMB = true, mib(p.HostExperts/4)
		cfg.GPULayers, cfg.OverrideTensor = p.GPULayers, p.Overrides
		s, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%d MiB: %v", cap, err)
		}
		r, err := s.Generate(t.Context(), Request{Text: words(37), Predict: 16})
		if err != nil {
			t.Fatal(err)
		}
		c, held := s.Counters(), rpcdev.Known(srv.At).Link.Held()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if r.LogitsHash != want.hash {
			t.Errorf("%d MiB: logits differ from the resident model's", cap)
		}
		if c.Misses == 0 || c.DevicePlacedBytes == 0 {
			t.Errorf("%d MiB: %d misses, %d bytes on the device", cap, c.Misses, c.DevicePlacedBytes)
		}
		projected := share.Bytes()
		t.Logf("%d MiB: projected %d, held %d", cap, projected, held)
		if off := held - projected; off > projected/50 || off < -projected/50 {
			t.Errorf("%d MiB: the server holds %d bytes, %d were projected", cap, held, projected)
		}
	}
	if len(seen) < 3 {
		t.Errorf("the caps gave only %d different placements", len(seen))
	}
}

// Two devices hold what the fitter projected for each, whether everything fits,
// which it leaves undivided, or hardly anything.
func TestTwoDevicesHoldTheirShares(t *testing.T) {
	a, b := rpctest.Start(t), rpctest.Start(t)
	spec := tiny("qwen3moe", "q8_0")
	spec.Layers = 6
	path := makeModel(t, "qwen3moe-six", spec)
	m, err := model.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cap := range []int{12, 24, 100} {
		cfg := baseConfig(path)
		cfg.RPC, cfg.RPCMB, cfg.UBatchSize = a.At+","+b.At, cap, 128
		p, err := device.Place(t.Context(), m, cfg, nil)
		if err != nil {
			t.Fatalf("%d MiB: %v", cap, err)
		}
		if n := p.Shares[0].Layers + p.Shares[1].Layers; n != p.GPULayers || p.Shares[0].Layers == 0 || p.Shares[1].Layers == 0 {
			t.Errorf("%d MiB: %s of %d layers", cap, p.Split(), p.GPULayers)
		}
		want := generate(t, baseConfig(path), words(20), 8)
		cfg.GPULayers, cfg.DeviceSplit, cfg.OverrideTensor = p.GPULayers, p.Split(), p.Overrides
		cfg.MoeStream, cfg.CacheMB = p.HostExperts > 0, mib(p.HostExperts/4)
		s, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%d MiB: %v", cap, err)
		}
		r, err := s.Generate(t.Context(), Request{Text: words(20), Predict: 8})
		if err != nil {
			t.Fatal(err)
		}
		held := s.Reserved()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if r.LogitsHash != want.hash {
			t.Errorf("%d MiB: logits differ from the resident model's", cap)
		}
		t.Logf("%d MiB: %s, overrides %q, held %v", cap, p.Split(), p.Overrides, held)
		for _, share := range p.Shares {
			if off := held[share.Device] - share.Bytes(); off > share.Bytes()*3/100 || off < -share.Bytes()*3/100 {
				t.Errorf("%d MiB: %s holds %d bytes, %d were projected", cap, share.Device, held[share.Device], share.Bytes())
			}
		}
	}
}

// A device of 600 MiB takes the layers that fit, experts and all, and the rest
// are streamed: the bits of the resident model. The projection is set against
// what was then reserved.
func TestDeviceOf600MiB(t *testing.T) {
	const mib = 1 << 20
	srv := rpctest.Start(t)
	path := makeModel(t, "qwen3moe-855mb", cappedSpec())
	defer os.Remove(path)
	m, err := model.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg := baseConfig(path)
	cfg.UBatchSize = 128
	want := generate(t, cfg, words(20), 8)
	cfg.RPC, cfg.RPCMB = srv.At, 600
	p, err := device.Place(t.Context(), m, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.GPULayers < 2 || p.HostExperts == 0 || p.HostExperts == m.RoutedBytes() {
		t.Fatalf("%d layers placed, %d of %d bytes of experts left on the host", p.GPULayers, p.HostExperts, m.RoutedBytes())
	}
	cfg.MoeStream, cfg.CacheMB, cfg.GPULayers, cfg.OverrideTensor = true, int(p.HostExperts/4/mib), p.GPULayers, p.Overrides
	cfg.DeviceSplit = p.Split()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Generate(t.Context(), Request{Text: words(20), Predict: 8})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Counters()
	t.Logf("%d layers of %d, %d MiB of weights placed, %d lookups, %d misses", p.GPULayers, m.Layers, c.DevicePlacedBytes/mib, c.Lookups, c.Misses)
	if r.LogitsHash != want.hash {
		t.Error("logits differ from the resident model's")
	}
	if c.DevicePlacedBytes < 200*mib || c.DeviceReservedBytes > 600*mib || c.Misses == 0 || c.BytesRead == 0 {
		t.Errorf("%d MiB placed, %d MiB reserved of 600; %d misses", c.DevicePlacedBytes/mib, c.DeviceReservedBytes/mib, c.Misses)
	}
	projected := p.Shares[0].Bytes()
	if off := c.DeviceReservedBytes - projected; off > projected*3/100 || off < -projected*3/100 {
		t.Errorf("%d bytes reserved on the device, %d projected", c.DeviceReservedBytes, projected)
	}
	// The host's share may be projected high, by up to a factor of two.
	if c.HostComputeBytes > p.HostCompute || 2*c.HostComputeBytes < p.HostCompute || c.HostContextBytes != p.HostContext {
		t.Errorf("host: %d + %d bytes reserved, %d + %d projected", c.HostContextBytes, c.HostComputeBytes, p.HostContext, p.HostCompute)
	}
}
