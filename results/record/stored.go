package record

import (
	"fmt"
	"time"

	"github.com/bmoe/bmoe/planner"
)

// StoredPrediction is a registered prediction with what it is about.
type StoredPrediction struct {
	Prediction
	ID        string        `json:"id"`
	PlanID    string        `json:"plan_id"`
	MachineID string        `json:"machine_id"`
	BuildID   string        `json:"build_id"`
	ModelID   string        `json:"model_id"`
	Plan      *planner.Plan `json:"plan,omitempty"`
}

// NewPrediction writes a plan's prediction down: its tolerance is the wider
// half of the interval as a share of the point, its falsifier the measurement
// that would refute it.
func NewPrediction(p planner.Prediction, madeAt time.Time) Prediction {
	out := Prediction{Prediction: p, MadeAt: madeAt.UTC()}
	e := p.DecodeSPerToken
	if e.Known && e.Point > 0 {
		out.Tolerance = max(e.Hi-e.Point, e.Point-e.Lo) / e.Point
		out.Falsifier = fmt.Sprintf("decode takes less than %.4g or more than %.4g s/token", e.Lo, e.Hi)
	}
	return out
}

// Event kinds.
const (
	EventVoid      = "void"      // what it names does not count
	EventResume    = "resume"    // an interrupted experiment went on
	EventInterrupt = "interrupt" // an experiment stopped before its end
	EventNote      = "note"
)

// Event is something said later about a run or an experiment. Events are
// appended, never changed.
type Event struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Subject string    `json:"subject"` // run or experiment id
	Why     string    `json:"why"`
	At      time.Time `json:"at"`
}

// Profile is what one probe of a machine found, for one model or none.
type Profile struct {
	ID        string             `json:"id"`
	MachineID string             `json:"machine_id"`
	ModelID   string             `json:"model_id,omitempty"`
	At        time.Time          `json:"at"`
	Facts     []planner.FactLine `json:"facts"`
}

// Histogram is a distribution of stack distances: one pass over a routing gives
// the hit rate of a policy at every cache size.
type Histogram struct {
	ID      string         `json:"id"`
	ModelID string         `json:"model_id"`
	RunID   string         `json:"run_id,omitempty"`
	Policy  string         `json:"policy"` // lru, a2d
	Phase   string         `json:"phase"`  // decode, all
	Source  string         `json:"source,omitempty"`
	Lookups int64          `json:"lookups"`
	Cold    int64          `json:"cold"` // lookups of what was never held before
	Bins    []HistogramBin `json:"bins"` // by rising distance
}

// HistogramBin counts the lookups that hit in a cache of Bytes bytes and in no
// smaller one.
type HistogramBin struct {
	Bytes int64 `json:"bytes"`
	Count int64 `json:"count"`
}

// HitRate is the share of lookups that hit in a cache of the given size.
func (h *Histogram) HitRate(cacheBytes int64) (float64, bool) {
	if h.Lookups <= 0 {
		return 0, false
	}
	var hits int64
	for _, b := range h.Bins {
		if b.Bytes <= cacheBytes {
			hits += b.Count
		}
	}
	return float64(hits) / float64(h.Lookups), true
}

// Trace is a recorded routing, as its CSV file holds it.
type Trace struct {
	ID      string    `json:"id"`
	ModelID string    `json:"model_id"`
	RunID   string    `json:"run_id,omitempty"`
	At      time.Time `json:"at"`
	CSV     []byte    `json:"csv,omitempty"`
}

// Hypothesis is one fitted shape of the hit-rate curve.
type Hypothesis struct {
	Name   string             `json:"name"` // h0-line, h1-saturating, h2-curve
	Params map[string]float64 `json:"params"`
	RMSE   float64            `json:"rmse"`
	Band   [2]float64         `json:"band"` // f it was fitted in
}

// Fit is a fitted hit-rate model. It is derived: versioned by method,
// recomputable from the inputs it names.
type Fit struct {
	ID         string         `json:"id"`
	Method     string         `json:"method"` // name/version
	MachineID  string         `json:"machine_id,omitempty"`
	ModelID    string         `json:"model_id,omitempty"`
	Inputs     []string       `json:"inputs"` // run and histogram ids, sorted
	Points     int            `json:"points"`
	Hypotheses []Hypothesis   `json:"hypotheses"`
	Verdict    string         `json:"verdict"`
	Extra      map[string]any `json:"extra,omitempty"`
}

// ContentID identifies a fit by its findings, method and inputs.
func (f Fit) ContentID() string {
	f.ID = ""
	return ID(f)
}
