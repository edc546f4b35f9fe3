package probes

import (
	"context"
	"fmt"
	"time"
)

// holder holds memory. Everything it holds is given back by release, on every
// path.
type holder interface {
	// hold adds n bytes of memory that no compressor makes smaller.
	hold(n int64) error
	// lost is how many of the bytes held the kernel has taken back.
	lost() (int64, error)
	release()
}

// holdPlan bounds a headroom measurement. Sizes are bytes.
type holdPlan struct {
	Ceiling int64         `json:"ceiling"` // hold no more than this
	Step    int64         `json:"step"`
	Pause   time.Duration `json:"pause"` // after each step, for reclaim to show itself
}

// holdResult is how far the holding went.
type holdResult struct {
	Held   int64  `json:"held"` // kept whole
	Lost   int64  `json:"lost"` // taken back at the step that ended it
	Reason string `json:"reason"`
}

// holdInSteps holds memory in steps until the first of it is taken back, the
// ceiling is reached, or room says that there is no more. told, if set, hears
// of every step that was kept.
func holdInSteps(ctx context.Context, h holder, p holdPlan, room func() (int64, string), told func(int64)) (holdResult, error) {
	defer h.release()
	var r holdResult
	for r.Held < p.Ceiling {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		step := min(p.Step, p.Ceiling-r.Held)
		if left, what := room(); left < step {
			r.Reason = "stopped before " + what
			return r, nil
		}
		if err := h.hold(step); err != nil {
			r.Reason = fmt.Sprintf("the next %s were refused: %v", size(step), err)
			return r, nil
		}
		if err := pause(ctx, p.Pause); err != nil {
			return r, err
		}
		gone, err := h.lost()
		if err != nil {
			return r, fmt.Errorf("watch what is held: %w", err)
		}
		if gone > 0 {
			r.Lost, r.Reason = gone, fmt.Sprintf("the step after it lost %s to reclaim", size(gone))
			return r, nil
		}
		r.Held += step
		if told != nil {
			told(r.Held)
		}
	}
	r.Reason = "all of the ceiling was kept; there may be more"
	return r, nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
