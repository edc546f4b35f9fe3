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

	Positive int     `json:"positive"`           // deltas in the arm's favour
	Negative int     `json:"negative"`           // deltas in the baseline's
	MDE      float64 `json:"mde"`                // effect these pairs would have found with 80 % power, ratio less one
	Sentence string  `json:"sentence,omitempty"` // the finding in plain words

	// Predicted is the verdict on the registered band: confirmed, refuted,
	// undecided or void; empty when none was registered.
	Predicted       string `json:"predicted,omitempty"`
	PredictedReason string `json:"predicted_reason,omitempty"`
}

// Verdict is what an experiment's runs say, by a method of a version. It is
// derived: `db check` recomputes it.
type Verdict struct {
	ID           string       `json:"id"`
	ExperimentID string       `json:"experiment_id"`
	Method       string       `json:"method"` // name/version
	Inputs       string       `json:"inputs"` // hash over the runs it was computed from; set when stored
	Comparisons  []Comparison `json:"comparisons"`
	Warnings     []string     `json:"warnings"`

	// Predictions judge what the planner expected of each arm: Arm against
	// the baseline "prediction", Verdict confirmed, refuted, undecided, void.
	Predictions []Comparison `json:"predictions,omitempty"`
	Drift       *Trend       `json:"drift,omitempty"` // log rate per run, over the schedule
	Slot        *Trend       `json:"slot,omitempty"`  // log rate of a block's first run against its later ones
}

// Trend is a nuisance that was measured beside the effect, on the log scale.
type Trend struct {
	Estimate float64 `json:"estimate"`
	Lo       float64 `json:"lo"`
	Hi       float64 `json:"hi"`
	Level    float64 `json:"level"`
}

// StoredRun is a run with its place in an experiment. Attempt counts from 1;
// a block that was interrupted is run again whole under the next attempt.
type StoredRun struct {
	Run     Run  `json:"run"`
	Slot    Slot `json:"slot"`
	Attempt int  `json:"attempt"`

	ExperimentID string   `json:"experiment_id,omitempty"`
	Void         []string `json:"void,omitempty"` // why it does not count, oldest first
}
