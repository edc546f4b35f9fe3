package record

import (
	"time"

	"github.com/bmoe/bmoe/planner/config"
)

// Experiment is a registered question: written before its first run, immutable
// after. Changing anything makes a new id.
type Experiment struct {
	ID           string         `json:"id"`
	Question     string         `json:"question"`
	Lever        string         `json:"lever"` // "" with Kind aa, plan or plan-vs-baseline
	Kind         string         `json:"kind"`  // sweep, aa, plan, plan-vs-baseline
	Metric       string         `json:"metric"`
	Design       string         `json:"design"` // random, abba, blocks
	Seed         int64          `json:"seed"`
	Pairs        int            `json:"pairs"`
	Looks        int            `json:"looks"`
	Margin       float64        `json:"margin"` // as a ratio less one: 0.02
	Alpha        float64        `json:"alpha"`
	Baseline     string         `json:"baseline"`
	Arms         []Arm          `json:"arms"`
	Falsifier    string         `json:"falsifier"`
	Band         *Band          `json:"band,omitempty"` // registered prediction of the effect
	CacheState   string         `json:"cache_state"`
	RegisteredAt time.Time      `json:"registered_at"`
	Machine      Machine        `json:"machine"`
	Build        Build          `json:"build"`
	Model        Model          `json:"model"`
	Schedule     []Slot         `json:"schedule"`
	Extra        map[string]any `json:"extra,omitempty"`
}

// Arm is one level of the lever.
type Arm struct {
	Name       string        `json:"name"`
	Value      string        `json:"value"`
	Config     config.Config `json:"config"`
	Prediction *Prediction   `json:"prediction,omitempty"`
}

// Band is a predicted effect, on the log scale.
type Band struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// Slot is one place in the schedule.
type Slot struct {
	Index int    `json:"index"`
	Block int    `json:"block"`
	Pos   int    `json:"pos"` // within the block
	Arm   string `json:"arm"`
}

// Comparison is an arm against the baseline.
type Comparison struct {
	Arm      string    `json:"arm"`
	Baseline string    `json:"baseline"`
	Pairs    int       `json:"pairs"`
	Effect   float64   `json:"effect"` // ratio less one; positive is better
	Lo       float64   `json:"lo"`
	Hi       float64   `json:"hi"`
	Level    float64   `json:"level"` // attained, a fraction
	P        float64   `json:"p"`
	PHolm    float64   `json:"p_holm"`
	Verdict  string    `json:"verdict"`
	Reason   string    `json:"reason"`
	Deltas   []float64 `json:"deltas"` // log ratios, in block order
}

// Verdict is what an experiment's runs say, by a method of a version. It is
// derived: `db check` recomputes it.
type Verdict struct {
	ID           string       `json:"id"`
	ExperimentID string       `json:"experiment_id"`
	Method       string       `json:"method"`
	Comparisons  []Comparison `json:"comparisons"`
	Warnings     []string     `json:"warnings"`
}
