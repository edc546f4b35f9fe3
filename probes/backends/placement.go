package backends

import (
	"context"
	"fmt"
	"strings"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
)

// fitter, and the devices it may use, is the name of the child that asks
// llama.cpp's capacity fitter.
const fitter = "fit:"

// Placement asks llama.cpp's capacity fitter where layers fit on the devices
// that can be used. It is not asked where there is none.
func (e *Engine) Placement(ctx context.Context, m *model.Model, cfg config.Config, devices []planner.Device) planner.PlacementFacts {
	names, own, servers := usable(devices, cfg)
	if len(names) == 0 {
		why := "there is no device to place layers on"
		if len(devices) > 0 {
			why = "no device that was found can be used"
		}
		f := probes.UnknownPlacement(why, "")
		f.Asked = planner.MeasuredFact(false, 0, why)
		return f
	}
	a, err := e.ask(ctx, m, cfg, fitter+strings.Join(names, "+"), servers)
	if err != nil || a.Placement == nil {
		return probes.UnknownPlacement(fmt.Sprintf("llama.cpp's capacity fitter: %v", err), "`--gpu-layers` by hand, compared")
	}
	for i := range a.Placement.Shares {
		a.Placement.Shares[i].Device = own[a.Placement.Shares[i].Device]
	}
	return placementFacts(a.Placement)
}

// usable lists the devices to fit to, by the names a child gives them that is
// told of the answering servers only, what they are called here, and those
// servers.
func usable(devices []planner.Device, cfg config.Config) (names []string, own map[string]string, servers string) {
	own = map[string]string{}
	dead := map[string]bool{}
	for i := range devices {
		if d := &devices[i]; planner.Ask(d.Usable) != planner.Yes {
			dead[d.Description] = true
		}
	}
	var alive []string
	for _, at := range config.Servers(cfg.RPC) {
		if !dead[at] {
			alive = append(alive, at)
		}
	}
	n := 0
	for i := range devices {
		d := &devices[i]
		server := serverDevice(d.Name)
		if planner.Ask(d.Usable) != planner.Yes || (server && dead[d.Description]) {
			continue
		}
		name := d.Name
		if server {
			name = device.RPCName(n)
			n++
		}
		names = append(names, name)
		own[name] = d.Name
	}
	return names, own, strings.Join(alive, ",")
}

// placementFacts are the fitter's answer as it stands. Zero from a projection
// is unknown, never free.
func placementFacts(p *device.Placement) planner.PlacementFacts {
	how := "llama.cpp's capacity fitter at this run's context"
	f := planner.PlacementFacts{
		Asked:       planner.MeasuredFact(true, 0, how),
		GPULayers:   planner.MeasuredFact(int64(p.GPULayers), 0, how),
		Overrides:   planner.MeasuredFact(p.Overrides, 0, how),
		HostExperts: planner.MeasuredFact(p.HostExperts, 0, "expert bytes of the layers it leaves on the host, from the file"),
		HostDense:   planner.MeasuredFact(p.HostDense, 0, "other weights it leaves on the host, from the file"),
		HostContext: planner.MeasuredFact(p.HostContext, 0, "llama.cpp's projection of the placement"),
		HostCompute: hostCompute(p.HostCompute),
		Width:       planner.MeasuredFact(int64(p.Width), 0, "tokens of the graph it was asked with"),
		SplitFFN:    planner.MeasuredFact(p.SplitFFN, 0, how),
	}
	var shares []planner.DeviceShare
	for _, s := range p.Shares {
		total := s.Bytes()
		if s.Layers > 0 && total == 0 {
			f.Shares = planner.UnknownFact[[]planner.DeviceShare]("the fitter put layers on "+s.Device+" and projects no bytes for them", "`--gpu-layers` by hand, compared")
			return f
		}
		shares = append(shares, planner.DeviceShare{Device: s.Device, Layers: int64(s.Layers), Bytes: total})
	}
	f.Shares = planner.MeasuredFact(shares, 0, how+": weights, context and buffers of each device")
	return f
}

// hostCompute is what a placement needs of the host's memory for buffers, which
// is never nothing.
func hostCompute(bytes int64) planner.Fact[int64] {
	if bytes <= 0 {
		return planner.UnknownFact[int64]("the placement's projection has no buffers on the host", owedBuffers)
	}
	return planner.MeasuredFact(bytes, 0, "llama.cpp's projection of the placement")
}
