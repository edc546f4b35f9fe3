// Package planner turns measured facts into a run's settings: a pure function
// from a Profile, the caller's Pins and a Policy to a Plan. It reads no file,
// no clock and no environment; what it does not know stays unknown, and a knob
// whose deciding fact is unknown keeps its default.
package planner

import "github.com/bmoe/bmoe/planner/config"

// Provenance says where a number or a decision comes from.
type Provenance string

// The five provenances, as they are printed.
const (
	Measured Provenance = "measured" // by a probe on this machine
	Derived  Provenance = "derived"  // computed from the model or from measured facts
	PolicyP  Provenance = "policy"   // a number in Policy
	Operator Provenance = "operator" // typed by the caller
	Unprobed Provenance = "unprobed" // nobody looked; the default stands
)

// Pins are the knobs the caller set by hand, flag or environment: knob name to
// the value in text. A plan never changes them.
type Pins map[string]string

// Plan is what to run, why, what it will hold and what it will cost.
type Plan struct {
	Config     config.Config `json:"config"`
	Regime     string        `json:"regime"`   // fits, experts-stream, dense-oversized, dense-model, all-on-devices, unknown
	Declined   bool          `json:"declined"` // no plan fits; Config is then what a run does anyway
	Decisions  []Decision    `json:"decisions"`
	Ledger     []LedgerRow   `json:"ledger"`
	Prediction Prediction    `json:"prediction"`
	Reproduce  []string      `json:"reproduce"` // arguments behind `bmoe run`

	// Placement is what a placement on devices was projected to hold, where one
	// is used.
	Placement *Projection `json:"placement,omitempty"`
}

// Decision is one line of a plan.
type Decision struct {
	Knob       string     `json:"knob"`
	Value      string     `json:"value"`
	Provenance Provenance `json:"provenance"`
	Reason     string     `json:"reason"` // the full account
	Brief      string     `json:"brief"`  // one plain sentence with the deciding number
	Topic      string     `json:"topic"`  // stable kebab-case
}

// LedgerRow is one thing the run holds.
type LedgerRow struct {
	Row     string `json:"row"`
	Bytes   int64  `json:"bytes"`
	Ceiling string `json:"ceiling"` // holdable, lockable, in-turn, limit (a ceiling's own row)
	Note    string `json:"note,omitempty"`
}

// Estimate is a predicted quantity: a point and an interval around it.
type Estimate struct {
	Known bool    `json:"known"`
	Point float64 `json:"point"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	Basis string  `json:"basis,omitempty"` // what it was computed from
}

// Prediction is what a plan expects to be measured. Rates are seconds per
// token and tokens per second, sizes bytes, the hit rate a fraction.
type Prediction struct {
	DecodeSPerToken   Estimate `json:"decode_s_per_token"`
	PrefillTokensPerS Estimate `json:"prefill_tokens_per_s"`
	HitRate           Estimate `json:"hit_rate"`
	BytesPerToken     Estimate `json:"bytes_per_token"`
	Dominant          string   `json:"dominant,omitempty"` // the term that decides decode: storage, memory, management

	// Terms are what DecodeSPerToken and PrefillTokensPerS are made of, so that
	// they can be asked again for another hit rate and another prompt.
	Terms        *PriceTerms   `json:"terms,omitempty"`
	PrefillTerms *PrefillTerms `json:"prefill_terms,omitempty"`
}
