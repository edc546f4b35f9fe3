package planner

import (
	"strings"
	"testing"
)

func TestAgainstJudgesByTheTolerance(t *testing.T) {
	const mib = 1 << 20
	p := Projection{Devices: []DeviceShare{{"GPU0", 8, 1000 * mib}}, HostContext: 100 * mib, HostCompute: 200 * mib}
	tests := []struct {
		device, context, buffers int64 // reserved, MiB
		within                   [3]bool
	}{
		{1000, 100, 200, [3]bool{true, true, true}},
		{974, 50, 100, [3]bool{true, true, true}},
		{1030, 99, 199, [3]bool{true, true, true}},
		{1031, 101, 201, [3]bool{false, false, false}},
		{969, 49, 99, [3]bool{false, false, false}},
		{0, 0, 0, [3]bool{false, false, false}},
	}
	for _, tt := range tests {
		got := p.Against(map[string]int64{"GPU0": tt.device * mib}, tt.context*mib, tt.buffers*mib)
		for i, r := range got {
			if r.Within != tt.within[i] || strings.Contains(r.String(), "further apart") == tt.within[i] {
				t.Errorf("%s, within %v, want %v", r, r.Within, tt.within[i])
			}
		}
	}
	got := (&Projection{}).Against(nil, 0, 0)
	if len(got) != 2 || !got[0].Within || got[0].String() != "host context: 0.0 MiB projected, 0.0 reserved" {
		t.Errorf("nothing projected and nothing reserved: %v", got)
	}
}
