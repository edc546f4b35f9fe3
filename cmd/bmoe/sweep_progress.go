package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/bmoe/bmoe/experiments"
)

// sweepProgress shows how far a sweep is: a bar on a terminal, a line per run
// elsewhere. It is never told what was measured.
type sweepProgress struct {
	w   io.Writer
	bar *progressbar.ProgressBar // nil: lines
	tty bool
}

func newSweepProgress(w io.Writer) *sweepProgress {
	return &sweepProgress{w: w, tty: isTerminal(w)}
}

func (s *sweepProgress) show(p experiments.Progress) {
	if s.tty {
		s.advance(p)
		return
	}
	switch {
	case p.Phase == experiments.PhaseRunning:
		fmt.Fprintf(s.w, "run %d/%d  %s%s\n", p.Done+1, p.Total, place(p), eta(p.ETA))
	case p.Phase == experiments.PhaseEnded && p.State != "done":
		fmt.Fprintf(s.w, "        arm %s: %s\n", p.Arm, p.State)
	}
}

// advance redraws the bar.
func (s *sweepProgress) advance(p experiments.Progress) {
	if s.bar == nil {
		s.bar = progressbar.NewOptions(p.Total,
			progressbar.OptionSetWriter(s.w), progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionShowCount())
	}
	text := place(p) + eta(p.ETA)
	if p.Phase == experiments.PhaseWaiting {
		text += ", waiting for a quiet machine"
	}
	s.bar.Describe(text)
	_ = s.bar.Set(p.Done)
}

func (s *sweepProgress) end() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}

func place(p experiments.Progress) string {
	if p.Block == 0 {
		return "warm-up, arm " + p.Arm
	}
	return fmt.Sprintf("block %d/%d, arm %s", p.Block, p.Blocks, p.Arm)
}

func eta(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Minute:
		return fmt.Sprintf(", about %d s left", int(d.Round(time.Second).Seconds()))
	}
	return ", about " + clock(d) + " left"
}

// clock writes a duration as people say it: 4:05 min, 1:02:30 h.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d h", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d min", s/60, s%60)
}
