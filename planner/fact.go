package planner

import (
	"encoding/json"
	"fmt"
)

// State says whether a fact has a value. The zero value is Unknown, so a
// profile nobody filled in claims nothing.
type State string

// The two states of a fact.
const (
	Unknown State = ""
	Known   State = "known"
)

// Fact is one thing that was, or could have been, found out about the model or
// the machine. An unknown fact is an input like any other: it carries why it
// is unknown and which measurement would settle it.
type Fact[T any] struct {
	State      State      `json:"state,omitempty"`
	Value      T          `json:"value,omitempty"`
	Unit       string     `json:"unit,omitempty"`
	Spread     float64    `json:"spread,omitempty"` // (max-min)/median over repeats; 0: one sample or exact
	Provenance Provenance `json:"provenance,omitempty"`
	Reason     string     `json:"reason,omitempty"` // how it was found, or why it was not
	Owed       string     `json:"owed,omitempty"`   // the measurement an unknown fact waits for
	CostS      float64    `json:"cost_s,omitempty"` // seconds spent finding it
	MeasuredAt string     `json:"measured_at,omitempty"`
}

// Flag is a yes-or-no fact; read it with Ask.
type Flag = Fact[bool]

// Tri is the answer to a yes-or-no question that may not have been asked.
type Tri int

// The three answers.
const (
	DontKnow Tri = iota
	No
	Yes
)

func (t Tri) String() string { return [...]string{"unknown", "no", "yes"}[t] }

// Ask returns a flag's answer.
func Ask(f Flag) Tri {
	switch {
	case f.State != Known:
		return DontKnow
	case f.Value:
		return Yes
	}
	return No
}

// MeasuredFact is a value that a probe measured here, with the spread of its
// repeats.
func MeasuredFact[T any](v T, spread float64, how string) Fact[T] {
	return Fact[T]{State: Known, Value: v, Spread: spread, Provenance: Measured, Reason: how}
}

// DerivedFact is a value computed from the model's metadata or other facts.
func DerivedFact[T any](v T, how string) Fact[T] {
	return Fact[T]{State: Known, Value: v, Provenance: Derived, Reason: how}
}

// UnknownFact is a fact that was looked for and not found, or not looked for.
func UnknownFact[T any](why, owed string) Fact[T] {
	return Fact[T]{Provenance: Unprobed, Reason: why, Owed: owed}
}

// Timed adds what a fact cost and when it was taken.
func (f Fact[T]) Timed(seconds float64, at string) Fact[T] {
	f.CostS, f.MeasuredAt = seconds, at
	return f
}

// Get returns the value and whether there is one.
func (f Fact[T]) Get() (T, bool) { return f.Value, f.State == Known }

// Or returns the value, or def when there is none.
func (f Fact[T]) Or(def T) T {
	if f.State == Known {
		return f.Value
	}
	return def
}

// OK reports whether the fact has a value.
func (f Fact[T]) OK() bool { return f.State == Known }

// FactLine is one fact as `bmoe probe` prints it. State is known or unknown,
// and yes, no or unknown for a flag.
type FactLine struct {
	Name       string     `json:"name"`
	State      string     `json:"state"`
	Value      any        `json:"value"`
	Unit       string     `json:"unit"`
	Spread     float64    `json:"spread"`
	Provenance Provenance `json:"provenance"`
	Reason     string     `json:"reason"`
	Owed       string     `json:"owed,omitempty"`
	CostS      float64    `json:"cost_s"`
	MeasuredAt string     `json:"measured_at,omitempty"`
}

// anyFact is what the table of facts needs of a Fact, whatever its type.
type anyFact interface {
	line(name, unit string) FactLine
	setJSON(data []byte) error
}

func (f *Fact[T]) line(name, unit string) FactLine {
	l := FactLine{
		Name: name, State: "unknown", Unit: unit, Spread: f.Spread, Provenance: f.Provenance,
		Reason: f.Reason, Owed: f.Owed, CostS: f.CostS, MeasuredAt: f.MeasuredAt,
	}
	if f.Unit != "" {
		l.Unit = f.Unit
	}
	if l.Provenance == "" {
		l.Provenance = Unprobed
	}
	if f.State != Known {
		if l.Reason == "" {
			l.Reason = "nobody looked"
		}
		return l
	}
	l.State, l.Value = "known", f.Value
	if flag, ok := any(f.Value).(bool); ok {
		l.State = "no"
		if flag {
			l.State = "yes"
		}
	}
	return l
}

// setJSON gives the fact a measured value written as JSON.
func (f *Fact[T]) setJSON(data []byte) error {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("value %s: %w", data, err)
	}
	*f = Fact[T]{State: Known, Value: v, Provenance: Measured}
	return nil
}
