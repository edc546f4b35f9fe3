package backends

import (
	"slices"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
)

func TestMemoryIsToldByHoldingSome(t *testing.T) {
	const mib, base = 1 << 20, 8 << 30
	taken := round{base, base - heldBytes - 2*mib, base - 3*mib}
	still := round{base, base + 4*mib, base - 5*mib}
	noise := round{base, base - 400*mib, base - 390*mib} // something else took it
	grew := round{base, base - heldBytes, base - heldBytes}
	tests := []struct {
		name   string
		rounds []round
		want   planner.Tri
	}{
		{"nothing held", nil, planner.DontKnow},
		{"once is chance", []round{taken}, planner.DontKnow},
		{"goes and comes back", []round{taken, taken}, planner.Yes},
		{"does not move", []round{still, still}, planner.No},
		{"one disturbed", []round{taken, noise, taken}, planner.Yes},
		{"disturbed", []round{still, noise, noise}, planner.DontKnow},
		{"contradicts itself", []round{taken, still, taken}, planner.DontKnow},
		{"went and did not come back", []round{grew, grew, grew}, planner.DontKnow},
	}
	for _, tt := range tests {
		if got := drawn(tt.rounds); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What a backend declares is not overruled by a difference in free memory.
func TestDeclaredMemoryIsBelieved(t *testing.T) {
	for _, tt := range []struct {
		d    device.Info
		want planner.Tri
	}{
		{device.Info{Name: "Nonesuch0", HostMemory: true, Kind: device.Accelerator}, planner.Yes},
		{device.Info{Name: "Nonesuch0", Kind: device.IGPU, Free: 1 << 34}, planner.Yes},
		{device.Info{Name: "Nonesuch0", Kind: device.GPU, Free: 1 << 20}, planner.DontKnow},
		{device.Info{Name: "Nonesuch0", Kind: device.GPU, Free: 1 << 34}, planner.DontKnow}, // it cannot be held
	} {
		if got := memoryOf(probes.Local(), &tt.d); got.Host != tt.want || got.How == "" {
			t.Errorf("%+v: %+v, want %v", tt.d, got, tt.want)
		}
	}
}

// A module without a device is a machine without one; no module is a build
// without one.
func TestThreeAnswersAboutBackends(t *testing.T) {
	cpu := device.Info{Name: "CPU", Kind: device.CPU, Backend: "CPU"}
	for want, r := range map[string]*device.Report{
		"This machine has no accelerator":            {Info: cpu, Devices: []device.Info{cpu}, Loaded: []string{"CPU", "Vulkan"}},
		"This build carries no accelerator backend":  {Info: cpu, Devices: []device.Info{cpu}, Loaded: []string{"CPU", "RPC"}},
		"This machine has no accelerator that the b": {Info: cpu, Devices: []device.Info{cpu}, Linked: []string{"CPU", "Metal"}},
		"Nobody looked": nil,
	} {
		answers := map[string]any{"CPU": &answer{Report: r}}
		if r == nil {
			answers["CPU"] = &probes.ChildError{Signal: "signal 11: segmentation fault"}
		}
		ask, _ := scripted(t, answers)
		p := planner.Profile{Backends: New(ask).Backends(t.Context(), tiny(t, nil), config.Default())}
		plan, err := planner.Make(p, config.Default(), planner.Pins{}, planner.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(plan.Decisions, func(d planner.Decision) bool {
			return d.Topic == "devices" && strings.Contains(d.Brief, want)
		}) {
			t.Errorf("no line says %q: %+v", want, p.Backends)
		}
	}
}
