package device

import (
	"context"
	"errors"
	"math"
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

// passes are times that a graph is told to take, the last one for ever.
type passes []float64

func (p *passes) Run() (float64, error) {
	t := (*p)[0]
	if len(*p) > 1 {
		*p = (*p)[1:]
	}
	return t, nil
}

func TestSteadyIsTheMeanOfTheWindowsThatAgree(t *testing.T) {
	const slow, fast, interrupted = 0.02, 0.0011, 0.003
	p := passes{slow, slow, slow} // a window of threads on one processor
	for range 40 {
		p = append(p, fast, fast, fast, interrupted)
	}
	mean, spread, err := steady(context.Background(), &p)
	if want := (3*fast + interrupted) / 4; err != nil || math.Abs(mean/want-1) > 0.1 || spread > agree {
		t.Errorf("mean %g with spread %g (%v), want %g: interruptions count, the slow window does not", mean, spread, err, want)
	}
	var alone passes
	for total := 0.0; total < repeatFor; total += fast { // one window's
		alone = append(alone, fast)
	}
	alone = append(alone, slow)
	if mean, spread, err = steady(context.Background(), &alone); err != nil || math.Abs(mean/fast-1) > 0.05 || spread < agree {
		t.Errorf("one fast window among slow ones: mean %g, spread %g (%v), want %g and a spread that says so", mean, spread, err, fast)
	}
}
