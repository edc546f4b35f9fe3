package planner

import (
	"fmt"

	"github.com/bmoe/bmoe/planner/config"
)

// keepPins writes one line for every knob the caller fixed. Nothing after this
// changes them. A knob that changes what the model computes is only ever here.
func (st *planning) keepPins() {
	for _, p := range config.Table() {
		if _, ok := st.pins[p.Name]; !ok || p.Group == config.GroupInput || p.Group == config.GroupSample {
			continue
		}
		value := p.Get(&st.cfg)
		if value == "" {
			value = "-"
		}
		d := Decision{
			Knob: p.Name, Value: value, Provenance: Operator, Topic: "pinned",
			Reason: fmt.Sprintf("set by %s or %s; a plan never changes what the caller set", p.Flag(), p.Env()),
			Brief:  "Kept as you set it: " + value + ".",
		}
		if p.Lossy {
			d.Topic = "lossy"
			d.Reason = fmt.Sprintf("set by %s or %s; it changes what the model computes, which only the caller may choose", p.Flag(), p.Env())
			d.Brief = "Kept as you set it, " + value + "; the model's answers change with it."
		}
		st.write(d)
	}
}

// disabled says that a pin keeps a stage from deciding.
func (st *planning) disabled(stageName, knob string) {
	st.note(stageName+"-pinned", st.value(knob), Operator,
		fmt.Sprintf("Your own setting, %s, takes the place of this choice.", st.value(knob)),
		fmt.Sprintf("%s fixes this, so the %s stage decides nothing; leave the flag out to have it planned", flagOf(knob), stageName))
}
