package probes

import (
	"errors"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/planner"
)

func TestLocks(t *testing.T) {
	all := func(n int64) (int64, error) { return n, nil }
	upTo := func(most int64) locker { return func(n int64) (int64, error) { return min(n, most), nil } }
	text := func(s string) *string { return &s }
	tests := []struct {
		name, machine string
		edit          map[string]*string
		try           locker
		want          int64 // -1 unknown
		store         planner.Tri
		why           string
	}{
		{"net of what is locked", "laptop-zram", nil, all, 8*mib - 64*kib, planner.Yes, "64 KiB locked"},
		{"refused part way", "laptop-zram", nil, upTo(3 * mib), 3 * mib, planner.Yes, "refused after 3.0 MiB"},
		{"refused at once", "laptop-zram", nil, upTo(0), 0, planner.No, "refused after 0 B"},
		{"no limit: memory bounds it", "container-v2", nil, all, 9 * gib / 4, planner.Yes, "no lock limit"},
		{"the capability lifts the limit", "server-no-swap", nil, all, 67021133 * kib, planner.Yes, "CAP_IPC_LOCK lifts"},
		{"a capability that counts for nothing", "server-no-swap", nil, upTo(8 * mib), 8 * mib, planner.Yes, "not honoured"},
		{"nothing left under the limit", "laptop-zram", map[string]*string{"proc/self/status": text("VmLck:\t 8192 kB\nCapEff:\t0\n")}, all, 0, planner.No, "8.0 MiB locked"},
		{"limits cannot be read", "laptop-zram", map[string]*string{"proc/self/limits": nil}, all, -1, planner.DontKnow, "limits"},
		{"garbled limit", "laptop-zram", map[string]*string{"proc/self/limits": text("Max locked memory  many many bytes\n")}, all, -1, planner.DontKnow, "Max locked memory"},
		{"status without VmLck", "laptop-zram", map[string]*string{"proc/self/status": text("VmSize: 1 kB\n")}, all, -1, planner.DontKnow, "VmLck"},
		{"the attempt fails, which is not zero", "laptop-zram", nil, func(int64) (int64, error) { return 0, errors.New("function not implemented") }, -1, planner.DontKnow, "first lock failed"},
		{"no memory to try with", "laptop-zram", nil, func(int64) (int64, error) { return 0, errNoTrial }, 8*mib - 64*kib, planner.Yes, "not tried"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := recorded(t, tt.machine, tt.edit)
			f := h.locks(h.Memory().Holdable, tt.try)
			if got := f.InPlace.Or(-1); got != tt.want || !strings.Contains(f.InPlace.Reason, tt.why) {
				t.Errorf("in place = %d (%s), want %d because of %q", got, f.InPlace.Reason, tt.want, tt.why)
			}
			if got := planner.Ask(f.Store); got != tt.store {
				t.Errorf("store = %s, want %s", got, tt.store)
			}
			if tt.want < 0 && (f.InPlace.Owed == "" || !f.UpperBound.OK()) {
				t.Errorf("unknown without an owed measurement or the bound that is known anyway: %+v", f)
			}
		})
	}
}
