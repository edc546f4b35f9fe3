package experiments

import (
	"context"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"github.com/bmoe/bmoe/results/record"
)

// busyWindow is long enough for the kernel's 10 ms accounting to mean something
// and short enough not to be felt before each run.
const busyWindow = 200 * time.Millisecond

// Host is the Sensor of this machine around a snapshot function.
type Host struct {
	Snapshot func(ctx context.Context, modelPath string) record.Environment
}

// Environment implements Sensor.
func (h Host) Environment(ctx context.Context, modelPath string) record.Environment {
	return h.Snapshot(ctx, modelPath)
}

// Busy implements Sensor. No run of ours is alive when it is asked, so what is
// busy is somebody else.
func (h Host) Busy(ctx context.Context) (float64, bool) {
	p, err := cpu.PercentWithContext(ctx, busyWindow, false)
	if err != nil || len(p) == 0 {
		return 0, false
	}
	return p[0] / 100, true
}
