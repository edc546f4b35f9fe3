package device

import (
	"errors"
	"testing"
	"time"
)

// Two threads on one processor take a thousand times as long until the
// scheduler parts them: the probe must wait for that, not report it.
func TestFastestOutlastsThreadsOnOneProcessor(t *testing.T) {
	rested := 0
	run := func() (float64, error) {
		if rested < 3 {
			return 0.25, nil
		}
		return 1e-4, nil
	}
	if got := fastest(run, func(time.Duration) { rested++ }); got != 1e-4 {
		t.Errorf("fastest of passes that are slow until the third rest is %g s, want 1e-4", got)
	}
}

func TestFastestGivesUp(t *testing.T) {
	passes := 0
	slow := func() (float64, error) { passes++; return 0.5, nil }
	if got := fastest(slow, func(time.Duration) {}); got != 0.5 || passes > tinyRests+1 {
		t.Errorf("a device that is slow by nature: %g s after %d passes, want 0.5 after at most %d", got, passes, tinyRests+1)
	}
	fails := func() (float64, error) { return 0, errors.New("device lost") }
	if got := fastest(fails, func(time.Duration) {}); got != 0 {
		t.Errorf("a failing device gives %g s, want 0", got)
	}
}
