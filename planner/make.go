package planner

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bmoe/bmoe/planner/config"
)

// stage is one step of planning, in the order the documentation lists them.
type stage struct {
	name string
	run  func(*planning)
}

// stages decide one thing each; an earlier one never asks a later one.
var stages = []stage{
	{"pins", (*planning).keepPins},
	{"budget", (*planning).findBudget},
	{"widest-graph", (*planning).chooseWidth},
	{"regime", (*planning).classify},
	{"placement", (*planning).applyPlacement},
	{"accelerator", (*planning).weighAccelerators},
	{"dense-policy", (*planning).chooseDense},
	{"ledger", (*planning).allocate},
	{"cache-floor", (*planning).applyFloor},
	{"prefill-slots", (*planning).choosePrefillSlots},
	{"io", (*planning).chooseIO},
	{"repack", (*planning).chooseRepack},
	{"stream-nothing", (*planning).compareWithMapping},
	{"left-alone", (*planning).listLeftAlone},
	{"devices", (*planning).listDevices},
	{"ledger-rows", (*planning).writeLedger},
	{"prediction", (*planning).predict},
}

// Make plans a run. base holds the values of the pinned knobs (and nothing
// else but defaults); pins says which they are. The error is a pin that does
// not parse; a plan that cannot fit is not an error but a declined plan.
func Make(p Profile, base config.Config, pins Pins, pol Policy) (Plan, error) {
	pins = maps.Clone(pins)
	for name, text := range pins {
		if text == "auto" && (name == "cache-mb" || name == "repack") {
			delete(pins, name) // asks for a decision instead of fixing one
		}
	}
	st := &planning{p: &p, pins: pins, pol: pol, cfg: base, def: config.Default()}
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		param, ok := config.Lookup(name)
		if !ok {
			return Plan{}, fmt.Errorf("pin %s: there is no such knob", name)
		}
		if param.Kind == config.List {
			continue // Set would append to what base already holds
		}
		if err := param.Set(&st.cfg, pins[name]); err != nil {
			return Plan{}, fmt.Errorf("pin %s: %w", name, err)
		}
	}
	st.m = viewModel(&p.Model, st.cfg.NExpertUsed, max(p.Storage.Align.Or(0), 4096))
	for _, s := range stages {
		s.run(st)
	}
	st.plan.Config = st.cfg
	st.plan.Reproduce = config.Args(&st.cfg)
	return st.plan, nil
}

// StageNames lists the planner's stages in the order they run.
func StageNames() []string {
	names := make([]string, len(stages))
	for i, s := range stages {
		names[i] = s.name
	}
	return names
}
