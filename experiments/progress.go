package experiments

import "time"

// Phase is what the conductor is doing.
type Phase string

// The phases of one run.
const (
	PhaseWaiting Phase = "waiting" // for the entry conditions
	PhaseRunning Phase = "running"
	PhaseEnded   Phase = "ended"
)

// Progress is one step of an experiment. It has no measurement in it, by
// design: whoever watches an effect grow stops when they like what they see.
type Progress struct {
	Phase   Phase
	Arm     string
	Block   int // from 1; 0 is the warm-up
	Blocks  int
	Done    int // runs with an outcome, earlier sessions included
	Total   int
	State   string // of the run that ended
	Elapsed time.Duration
	ETA     time.Duration // 0: not known yet
}
