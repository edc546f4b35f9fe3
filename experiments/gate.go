package experiments

import (
	"context"
	"strings"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// Entry conditions: how far a run's start may differ from the first run's.
const (
	gateMemory = 0.9  // of the available memory the first run started with
	gateHeatC  = 5    // degrees above it
	gateBusy   = 0.25 // share of the processors others may use
	gatePoll   = 250 * time.Millisecond
)

const gatePrefix = "entry-gate: "

// Gate holds a run back until the machine is as it was before the first run,
// by what is measured and not by a fixed pause, and gives up after Wait.
type Gate struct {
	Sensor Sensor
	Wait   time.Duration
	Sleep  func(context.Context, time.Duration) // nil: real time
	Now    func() time.Time                     // nil: the clock

	reference *record.Environment
}

// Enter waits for the conditions and returns them as they were when it let go,
// with a warning for each that still did not hold. The first call on a gate
// without a reference sets it.
func (g *Gate) Enter(ctx context.Context, modelPath string) (record.Environment, []string) {
	now, sleep := g.Now, g.Sleep
	if now == nil {
		now = time.Now
	}
	if sleep == nil {
		sleep = pause
	}
	deadline := now().Add(g.Wait)
	for {
		env := g.Sensor.Environment(ctx, modelPath)
		if busy, ok := g.Sensor.Busy(ctx); ok {
			env.CPUBusy = busy
			later := g.Sensor.Environment(ctx, "")
			env.Entry = stalls(&env, &later)
		}
		unmet := g.unmet(&env)
		if len(unmet) == 0 || ctx.Err() != nil || !now().Before(deadline) {
			if g.reference == nil {
				g.reference = &env
			}
			return env, unmet
		}
		sleep(ctx, gatePoll)
	}
}

// stalls are what others waited for between two snapshots: no run of ours is
// alive then. Nil where the kernel does not say.
func stalls(from, to *record.Environment) *record.Stalls {
	moment := to.At.Sub(from.At)
	if moment <= 0 || to.IOWaited == 0 && to.MemWaited == 0 {
		return nil
	}
	share := func(d time.Duration) float64 { return min(100, 100*max(0, d.Seconds())/moment.Seconds()) }
	return &record.Stalls{Mem: share(to.MemWaited - from.MemWaited), IO: share(to.IOWaited - from.IOWaited)}
}

// SetReference makes the conditions of an earlier first run the measure, for an
// experiment that is resumed.
func (g *Gate) SetReference(env record.Environment) { g.reference = &env }

func (g *Gate) unmet(env *record.Environment) []string {
	var w []string
	if env.CPUBusy > gateBusy {
		w = append(w, gatePrefix+"started although other work kept over 25 % of the processors busy")
	}
	ref := g.reference
	if ref == nil {
		return w
	}
	if ref.MemAvailable > 0 && float64(env.MemAvailable) < gateMemory*float64(ref.MemAvailable) {
		w = append(w, gatePrefix+"started with less than 90 % of the first run's available memory")
	}
	if ref.TempC > 0 && env.TempC > ref.TempC+gateHeatC {
		w = append(w, gatePrefix+"started over 5 degrees warmer than the first run")
	}
	return w
}

// gateRule recognises a gate's warning among a run's warnings.
func gateRule(warning string) (string, bool) {
	return warning, strings.HasPrefix(warning, gatePrefix)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
