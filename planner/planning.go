package planner

import (
	"slices"
	"strconv"

	"github.com/bmoe/bmoe/planner/config"
)

// Regimes: a ratio of model and machine, never a property of either.
const (
	RegimeUnknown   = "unknown"
	RegimeDense     = "dense-model"     // no routed experts: nothing to stream
	RegimeFits      = "fits"            // the whole model is held
	RegimeStream    = "experts-stream"  // all but the experts is held
	RegimeOversized = "dense-oversized" // not even that
	RegimeDevices   = "all-on-devices"  // the fitter left no experts on the host
)

// planning is a plan being made: the facts, what was decided so far, and the
// sums the stages hand on to each other.
type planning struct {
	p    *Profile
	pins Pins
	pol  Policy
	cfg  config.Config
	def  config.Config
	plan Plan

	m       modelView
	hold    holdable
	buffers buffers
	stream  bool   // experts are read from the file
	placed  bool   // the fitter's placement is loaded
	air     bool   // streams although it fits, for want of room
	why     string // of the regime, for later reasons
	dense   denseChoice
	device  deviceChoice
	cache   cacheChoice
	slots   slotChoice
	locks   lockView
}

// pinned reports whether the caller fixed a knob.
func (st *planning) pinned(knob string) bool {
	_, ok := st.pins[knob]
	return ok
}

// flagOf spells a knob's flag as the parameter table has it.
func flagOf(knob string) string {
	p, ok := config.Lookup(knob)
	if !ok {
		return knob
	}
	return p.Flag()
}

// offFlagOf spells the flag that turns a knob off.
func offFlagOf(knob string) string {
	p, ok := config.Lookup(knob)
	if !ok {
		return knob
	}
	return "--" + p.OffFlag()
}

// value is a knob's present value as text.
func (st *planning) value(knob string) string {
	p, ok := config.Lookup(knob)
	if !ok {
		return "-"
	}
	return p.Get(&st.cfg)
}

// decide sets a knob unless the caller pinned it, and writes the decision
// down. For a pinned knob nothing is written: the pin has its own line.
func (st *planning) decide(knob, value string, d Decision) bool {
	if st.pinned(knob) {
		return false
	}
	p, ok := config.Lookup(knob)
	if !ok || p.Lossy || p.Set(&st.cfg, value) != nil {
		return false
	}
	d.Knob, d.Value = knob, p.Get(&st.cfg)
	if d.Value == "" {
		d.Value = "-"
	}
	st.write(d)
	return true
}

// keep writes down that a knob stays as it is.
func (st *planning) keep(knob string, d Decision) {
	if st.pinned(knob) {
		return
	}
	d.Knob, d.Value = knob, st.value(knob)
	if d.Value == "" {
		d.Value = "-"
	}
	st.write(d)
}

// note writes down something that is not a knob's value: the topic is its
// name, the value the number it turns on.
func (st *planning) note(topic, value string, prov Provenance, brief, reason string) {
	if value == "" {
		value = "-"
	}
	st.write(Decision{Knob: topic, Value: value, Provenance: prov, Reason: reason, Brief: brief, Topic: topic})
}

// write appends a decision; a later decision about a knob replaces the
// earlier one in its place.
func (st *planning) write(d Decision) {
	if _, isKnob := config.Lookup(d.Knob); isKnob {
		for i := range st.plan.Decisions {
			if st.plan.Decisions[i].Knob == d.Knob {
				st.plan.Decisions[i] = d
				return
			}
		}
	}
	st.plan.Decisions = append(st.plan.Decisions, d)
}

// erase takes a decision back when a later stage made it moot.
func (st *planning) erase(knob string) {
	st.plan.Decisions = slices.DeleteFunc(st.plan.Decisions, func(d Decision) bool {
		return d.Knob == knob && d.Provenance != Operator
	})
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
