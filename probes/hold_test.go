package probes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/planner"
)

// fakeHolder is a machine that lets keep bytes and takes the rest back.
type fakeHolder struct {
	keeps    int64
	refuses  int64 // mapping more than this fails; 0 never
	held     int64
	released int
	peak     int64
	watchErr error
}

func (h *fakeHolder) hold(n int64) error {
	if h.refuses > 0 && h.held+n > h.refuses {
		return errors.New("cannot allocate memory")
	}
	h.held += n
	h.peak = max(h.peak, h.held)
	return nil
}

func (h *fakeHolder) lost() (int64, error) { return max(0, h.held-h.keeps), h.watchErr }
func (h *fakeHolder) release()             { h.held = 0; h.released++ }

func TestHoldInSteps(t *testing.T) {
	plenty := func() (int64, string) { return 1 << 60, "" }
	boom := errors.New("boom")
	tests := []struct {
		name   string
		holder fakeHolder
		room   func() (int64, string)
		want   int64
		reason string
		err    error
	}{
		{"stops at the first loss", fakeHolder{keeps: 350}, plenty, 300, "lost 50 B", nil},
		{"reaches the ceiling", fakeHolder{keeps: 1 << 40}, plenty, 1050, "all of the ceiling", nil},
		{"is refused", fakeHolder{keeps: 1 << 40, refuses: 250}, plenty, 200, "refused", nil},
		{"cannot watch", fakeHolder{keeps: 1 << 40, watchErr: boom}, plenty, 0, "", boom},
		{"loses at once", fakeHolder{}, plenty, 0, "lost 100 B", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := tt.holder
			r, err := holdInSteps(t.Context(), &h, holdPlan{Ceiling: 1050, Step: 100}, tt.room, nil)
			if r.Held != tt.want || !strings.Contains(r.Reason, tt.reason) || !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v; want %d, %q, %v", r, err, tt.want, tt.reason, tt.err)
			}
			if h.released != 1 || h.held != 0 || h.peak > 1050 {
				t.Errorf("released %d times, %d held, peak %d", h.released, h.held, h.peak)
			}
		})
	}
}

func TestHoldStopsWhereRoomEnds(t *testing.T) {
	h := &fakeHolder{keeps: 1 << 40}
	room := func() (int64, string) { return 420 - h.held, "the limit" }
	r, err := holdInSteps(t.Context(), h, holdPlan{Ceiling: 1000, Step: 100}, room, nil)
	if err != nil || r.Held != 400 || r.Reason != "stopped before the limit" || h.peak != 400 {
		t.Errorf("got %+v, %v, peak %d", r, err, h.peak)
	}
}

func TestHoldReleasesOnCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := &fakeHolder{keeps: 1 << 40}
	_, err := holdInSteps(ctx, h, holdPlan{Ceiling: 1000, Step: 100}, func() (int64, string) { return 1 << 60, "" }, func(held int64) {
		if held == 300 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || h.released != 1 || h.peak != 300 {
		t.Errorf("err %v, released %d, peak %d", err, h.released, h.peak)
	}
}

func TestHoldCeiling(t *testing.T) {
	tests := []struct {
		machine string
		want    int64
		what    string
	}{
		// memory.high leaves 2.25 GiB, less a twentieth of 3.5 GiB.
		{"container-v2", 9*gib/4 - 7*gib/2/20, "memory.high"},
		{"container-v1", 3*gib/2 - 2*gib/20, "limit_in_bytes"},
		// available, less a twentieth of what is installed, and what others may be squeezed to.
		{"laptop-zram", 2831156*kib - 16115048*kib/20 + 6157520*kib, "others"},
		{"server-no-swap", 67021133*kib - 100000000*kib/20, "commit limit"},
	}
	for _, tt := range tests {
		t.Run(tt.machine, func(t *testing.T) {
			h := recorded(t, tt.machine, nil)
			got, what, err := h.holdCeiling(h.readMemory(), h.Memory().Reclaim.Value)
			if err != nil || got != tt.want || !strings.Contains(what, tt.what) {
				t.Errorf("ceiling = %d (%s), %v; want %d (%s)", got, what, err, tt.want, tt.what)
			}
		})
	}
}

func TestHeadroomFromChild(t *testing.T) {
	line := func(r holdResult) string { b, _ := json.Marshal(r); return string(b) + "\n" }
	tests := []struct {
		name   string
		output string
		err    error
		want   int64
		reason string
	}{
		{"answers", line(holdResult{Held: 512 * mib}) + line(holdResult{Held: 768 * mib, Lost: 5, Reason: "the step after it lost 5 B to reclaim"}), nil, 768 * mib, "lost 5 B"},
		{"is killed for holding too much", line(holdResult{Held: 512 * mib}) + `{"held":`, &ChildError{Signal: "signal 9: killed"}, 512 * mib, "signal 9"},
		{"dies before the first step", "", &ChildError{Signal: "signal 9: killed"}, -1, "signal 9"},
		{"cannot be started", "", errors.New("no such file"), -1, "no such file"},
		{"keeps nothing", line(holdResult{Reason: "the step after it lost 16 MiB to reclaim"}), nil, -1, "nothing could be kept"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked []string
			child := func(_ context.Context, args []string) ([]byte, error) {
				asked = args
				return []byte(tt.output), tt.err
			}
			f := recorded(t, "container-v2", nil).headroom(t.Context(), planner.ReclaimKill, child)
			if got := f.Or(-1); got != tt.want || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("headroom = %d (%s), want %d (%s)", got, f.Reason, tt.want, tt.reason)
			}
			if len(asked) != 2 || asked[0] != "probe" || !strings.HasPrefix(asked[1], "--hold={") {
				t.Errorf("child was started with %q", asked)
			}
		})
	}
}

func TestHoldChildRefusesNonsense(t *testing.T) {
	for _, order := range []string{"", "{", `{"plan":{"step":1,"ceiling":5}}`, `{"plan":{"step":99999999,"ceiling":-1}}`} {
		var out bytes.Buffer
		if err := HoldChild(t.Context(), order, strings.NewReader(""), &out); err == nil || out.Len() > 0 {
			t.Errorf("order %q: err %v, output %q", order, err, out.String())
		}
	}
}
