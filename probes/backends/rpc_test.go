package backends

import (
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine/rpctest"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

func TestARealDeviceAndADeadServer(t *testing.T) {
	m := tiny(t, nil)
	alive, dead := rpctest.Start(t).At, rpctest.FreeAddr(t)
	cfg := config.Default()
	cfg.Model, cfg.CtxSize, cfg.RPC, cfg.RPCMB = m.Path, 1024, dead+","+alive, 512
	devices := New(child(t, "device", m.Path, time.Minute)).Devices(t.Context(), m, cfg)
	if len(devices) != 2 || devices[0].Name != "RPC0" || devices[1].Name != "RPC1" {
		t.Fatalf("devices %+v, want RPC0 on the dead server and RPC1 on the living one", devices)
	}
	if planner.Ask(devices[0].Usable) != planner.No || !strings.HasPrefix(devices[0].Usable.Reason, "--rpc "+dead) {
		t.Errorf("the dead server's device: %+v", devices[0].Usable)
	}
	d := devices[1]
	for name, f := range map[string]planner.Flag{"usable": d.Usable, "runs": d.RunsExpertOp, "identity": d.Identity, "identity wide": d.IdentityWide, "host memory": d.HostMemory} {
		if planner.Ask(f) != planner.Yes {
			t.Errorf("%s = %+v, want yes", name, f)
		}
	}
	if n, ok := d.NMSE.Get(); !ok || n != 0 {
		t.Errorf("NMSE = %+v, want 0: the server runs the same kernels", d.NMSE)
	}
	for name, f := range map[string]planner.Fact[float64]{"narrow": d.Narrow, "wide": d.Wide, "copy": d.CopyRate, "split": d.SplitSeconds} {
		if v, ok := f.Get(); !ok || v <= 0 {
			t.Errorf("%s = %+v", name, f)
		}
	}
	if n := d.FreeBytes.Or(0); n != 512<<20 || d.FreeBytes.Provenance != planner.Operator {
		t.Errorf("free = %+v, want the caller's limit", d.FreeBytes)
	}
	if points := d.Compute.Value; len(points) < 2 || points[len(points)-1].Bytes <= points[0].Bytes {
		t.Errorf("compute = %+v, want buffers that grow with the width", d.Compute)
	}
}

func TestLoopbackIsThisMachine(t *testing.T) {
	for at, want := range map[string]bool{
		"127.0.0.1:50052": true, "localhost:1": true, "[::1]:50052": true, "127.9.9.9:1": true,
		"192.168.1.4:50052": false, "gpu.example:50052": false, "": false,
	} {
		if here(at) != want {
			t.Errorf("here(%q) = %v", at, !want)
		}
	}
}

// Three servers that hang cost one wait, and the fourth is measured.
func TestHangingServersAreGreetedTogether(t *testing.T) {
	m := tiny(t, nil)
	cfg := config.Default()
	cfg.Model, cfg.CtxSize, cfg.RPCMB = m.Path, 1024, 64
	cfg.RPC = strings.Join([]string{rpctest.Hang(t), rpctest.Hang(t), rpctest.Start(t).At, rpctest.Hang(t)}, ",")
	e := New(child(t, "device", m.Path, time.Minute))
	e.Greet = time.Second
	d := e.Devices(t.Context(), m, cfg)
	if len(d) != 4 {
		t.Fatalf("%d devices", len(d))
	}
	for i, at := range config.Servers(cfg.RPC) {
		want := planner.No
		if i == 2 {
			want = planner.Yes
		}
		if planner.Ask(d[i].Usable) != want || d[i].Description != at || (want == planner.No && !strings.Contains(d[i].Usable.Reason, at)) {
			t.Errorf("%s: usable %+v", d[i].Name, d[i].Usable)
		}
		if cost := d[i].Usable.CostS; want == planner.No && cost > 2 {
			t.Errorf("%s: found out in %.1f s", d[i].Name, cost)
		}
	}
}
