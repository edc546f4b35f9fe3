package planner

import (
	"path/filepath"
	"strings"
	"testing"
)

// One machine whose GPU is armed, and what must change for each refusal.
func TestPrefillDeviceIsArmedOrRefusedWithItsReason(t *testing.T) {
	yes, no := MeasuredFact(true, 0, ""), MeasuredFact(false, 0, "it does not")
	bytes := func(n int64) Fact[int64] { return MeasuredFact(n, 0, "") }
	const gib = 1 << 30
	tests := []struct {
		name string
		edit func(p *Profile, d *Device, pins Pins)
		want string // "": it is armed
	}{
		{"wins and fits", func(*Profile, *Device, Pins) {}, ""},
		{"its probe died", func(_ *Profile, d *Device, _ Pins) {
			d.Usable = MeasuredFact(false, 0, "its probe ended the process that ran it (signal 11)")
		}, "unusable, its probe ended the process that ran it (signal 11)"},
		{"a type it does not run", func(_ *Profile, d *Device, _ Pins) { d.RunsExpertOp = no }, "does not run this model's expert types"},
		{"not measured wide", func(_ *Profile, d *Device, _ Pins) { d.Wide = UnknownFact[float64]("", "") }, "not measured 128 tokens wide"},
		{"zero is unmeasured", func(_ *Profile, d *Device, _ Pins) { d.Wide = MeasuredFact(0.0, 0, "") }, "not measured 128 tokens wide"},
		{"the host not measured", func(p *Profile, _ *Device, _ Pins) { p.Host.Wide = UnknownFact[float64]("", "") }, "not measured 128 tokens wide"},
		{"another answer", func(_ *Profile, d *Device, _ Pins) { d.IdentityWide = no }, "not shown to give the host's answer"},
		{"right one token wide only", func(_ *Profile, d *Device, _ Pins) { d.Identity, d.IdentityWide = yes, UnknownFact[bool]("", "") }, "not shown to give the host's answer"},
		{"no clear win", func(p *Profile, d *Device, _ Pins) { d.Wide = MeasuredFact(1.24*p.Host.Wide.Value, 0, "") }, "does not win by 1.25"},
		{"buffer not projected", func(_ *Profile, d *Device, _ Pins) { d.Compute = UnknownFact[[]WidthPoint]("", "") }, "compute buffer was not projected"},
		{"own memory too small", func(_ *Profile, d *Device, _ Pins) { d.HostMemory, d.FreeBytes = no, bytes(300<<20) }, "its own memory has 300 MiB free"},
		{"own memory", func(_ *Profile, d *Device, _ Pins) { d.HostMemory, d.FreeBytes = no, bytes(8*gib) }, ""},
		{"own memory without a size, charged here", func(_ *Profile, d *Device, _ Pins) {
			d.HostMemory, d.FreeBytes = no, UnknownFact[int64]("", "")
			d.Compute = MeasuredFact([]WidthPoint{{512, 9 * gib}, {1024, 9 * gib}}, 0, "")
		}, "short of one token cycle"},
		{"under the token cycle", func(_ *Profile, d *Device, _ Pins) {
			d.Compute = MeasuredFact([]WidthPoint{{512, 9 * gib}, {1024, 9 * gib}}, 0, "")
		}, "short of one token cycle"},
		{"the cache's lock", func(p *Profile, _ *Device, _ Pins) {
			p.Locks.InPlace, p.Locks.StoreBytes = bytes(2500<<20), bytes(2500<<20)
		}, "cost the cache its lock"},
		{"the other weights' lock", func(p *Profile, _ *Device, _ Pins) {
			p.Locks.SharedPool, p.Locks.StoreBytes = no, bytes(1900<<20)
		}, "cost the other weights their lock"},
		{"no room for a layer", func(p *Profile, _ *Device, _ Pins) { p.Model.LayerExperts = bytes(9 * gib) }, "finds no room in turn with the cache"},
		{"layers on devices by hand", func(_ *Profile, _ *Device, pins Pins) { pins["gpu-layers"] = "4" }, "loads as the model's only device"},
		{"turned off by hand", func(_ *Profile, _ *Device, pins Pins) { pins["prefill-device"] = "none" }, "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := readCase(t, filepath.Join("testdata", "plans", "worked-laptop-gpu.txt"))
			if c.pins == nil {
				c.pins = Pins{}
			}
			tt.edit(&c.profile, &c.profile.Devices[0], c.pins)
			plan := planOf(t, c)
			d := decision(plan, "prefill-device")
			if armed := plan.Config.PrefillDevice == "GPU0"; armed != (tt.want == "") {
				t.Errorf("armed: %v; %s", armed, d.Reason)
			}
			if !strings.Contains(d.Reason, tt.want) && plan.Config.PrefillDevice != tt.want {
				t.Errorf("reason %q, want %q in it", d.Reason, tt.want)
			}
			if plan.Config.PrefillBestEffort != (tt.want == "") {
				t.Errorf("best effort is %v", plan.Config.PrefillBestEffort)
			}
		})
	}
}

// The line about a device that is left out says where it is, in one sentence.
func TestAnUnusableDeviceIsNamedWithItsServer(t *testing.T) {
	c := readCase(t, filepath.Join("testdata", "plans", "worked-laptop-gpu.txt"))
	d := &c.profile.Devices[0]
	d.Description, d.Usable = "there:50052", MeasuredFact(false, 0, "it takes connections and did not answer")
	line := decision(planOf(t, c), "device")
	if line.Brief != "Device GPU0 (there:50052) is unusable and kept out of the run." || !strings.Contains(line.Reason, "UNUSABLE, it takes connections and did not answer;") {
		t.Errorf("%+v", line)
	}
}
