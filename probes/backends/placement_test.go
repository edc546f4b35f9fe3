package backends

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/rpctest"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

func device1(name, at string, usable bool) planner.Device {
	return planner.Device{Name: name, Description: at, Usable: planner.MeasuredFact(usable, 0, "")}
}

func TestUsableDevicesAreCountedAsTheChildCountsThem(t *testing.T) {
	cfg := config.Default()
	cfg.RPC = "a:1, b:2,c:3"
	names, own, servers := usable([]planner.Device{
		device1("Vulkan0", "a card", true), device1("Vulkan1", "a bad card", false),
		device1("RPC0", "a:1", false), device1("RPC1", "b:2", true), device1("RPC2", "b:2", true), device1("RPC3", "c:3", true),
	}, cfg)
	if diff := cmp.Diff([]string{"Vulkan0", "RPC0", "RPC1", "RPC2"}, names); diff != "" {
		t.Error(diff)
	}
	if servers != "b:2,c:3" || own["RPC0"] != "RPC1" || own["RPC2"] != "RPC3" || own["Vulkan0"] != "Vulkan0" {
		t.Errorf("servers %q, own names %v", servers, own)
	}
}

func TestZeroFromAProjectionIsUnknown(t *testing.T) {
	f := placementFacts(&device.Placement{GPULayers: 3, Shares: []device.Share{{Device: "Vulkan0", Layers: 3}}})
	if f.Shares.OK() {
		t.Errorf("shares %+v: layers that weigh nothing were believed", f.Shares)
	}
}

// The fitter's child answers for a real device.
func TestFitterAnswersThroughAChild(t *testing.T) {
	m := tiny(t, nil)
	cfg := config.Default()
	cfg.Model, cfg.CtxSize, cfg.RPC, cfg.RPCMB = m.Path, 1024, rpctest.Start(t).At, 64
	e := New(child(t, "device", m.Path, 2*time.Minute))
	f := e.Placement(t.Context(), m, cfg, []planner.Device{device1("RPC0", cfg.RPC, true)})
	shares, ok := f.Shares.Get()
	if !ok || len(shares) != 1 || shares[0].Device != "RPC0" || shares[0].Bytes == 0 || f.GPULayers.Or(0) == 0 {
		t.Errorf("facts %+v", f)
	}
	if f.HostContext.Or(-1) != 0 || f.HostCompute.Or(0) <= 0 || f.Width.Or(0) != config.DefaultUBatch {
		t.Errorf("host context %+v, buffers %+v, width %+v: everything lies on the device", f.HostContext, f.HostCompute, f.Width)
	}
	if left := f.HostExperts.Or(-1); left != 0 {
		t.Errorf("%d bytes of experts left on the host of a model of %d", left, m.RoutedBytes())
	}
}
