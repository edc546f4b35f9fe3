package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

// knobs binds the parameter table to a command's flags and remembers what the
// caller set, by flag or by BMOE_* variable: those are pins.
type knobs struct {
	cfg  config.Config
	pins planner.Pins
}

// knobValue is one knob as a pflag.Value.
type knobValue struct {
	k   *knobs
	p   config.Param
	off bool // the flag that turns a Bool off
}

func (v *knobValue) String() string {
	if v.k == nil || v.off {
		return ""
	}
	def := config.Default()
	return v.p.Get(&def)
}

func (v *knobValue) Type() string {
	switch {
	case v.p.Kind == config.Bool:
		return "bool"
	case v.p.Kind == config.Enum:
		return strings.Join(v.p.Enum, "|")
	case v.p.Unit != "":
		return v.p.Unit
	}
	return string(v.p.Kind)
}

func (v *knobValue) IsBoolFlag() bool { return v.p.Kind == config.Bool || v.off }

func (v *knobValue) Set(text string) error {
	if v.off {
		text = "off"
	}
	if err := v.p.Set(&v.k.cfg, text); err != nil {
		return err
	}
	v.k.pins[v.p.Name] = v.p.Get(&v.k.cfg)
	return nil
}

// bindKnobs adds a flag for every knob of the table to cmd, except those named.
func bindKnobs(cmd *cobra.Command, except ...string) *knobs {
	k := &knobs{cfg: config.Default(), pins: planner.Pins{}}
	fs := cmd.Flags()
	fs.SortFlags = false
	for _, p := range config.Table() {
		if slices.Contains(except, p.Name) {
			continue
		}
		v := &knobValue{k: k, p: p}
		f := fs.VarPF(v, p.Name, p.Short, p.Help)
		if v.IsBoolFlag() {
			f.NoOptDefVal = "true"
		}
		if p.Alias != "" {
			a := fs.VarPF(v, p.Alias, "", "same as "+p.Flag())
			a.Hidden = true
			a.NoOptDefVal = f.NoOptDefVal
		}
		if p.Kind == config.Bool || p.No != "" {
			off := &knobValue{k: k, p: p, off: true}
			n := fs.VarPF(off, p.OffFlag(), "", "turn "+p.Flag()+" off")
			n.NoOptDefVal = "true"
			n.Hidden = p.No == ""
		}
	}
	return k
}

// resolve applies BMOE_* variables under the flags already parsed and returns
// the configuration and the pins.
func (k *knobs) resolve() (config.Config, planner.Pins, error) {
	for _, p := range config.Table() {
		text, ok := os.LookupEnv(p.Env())
		if !ok {
			continue
		}
		if _, byFlag := k.pins[p.Name]; byFlag {
			continue
		}
		if err := p.Set(&k.cfg, text); err != nil {
			return k.cfg, nil, usageError{fmt.Errorf("%s: %w", p.Env(), err), "unset it or give it a value in range"}
		}
		k.pins[p.Name] = p.Get(&k.cfg)
	}
	return k.cfg, k.pins, nil
}

// expandDashes turns llama.cpp's several letters behind one dash (-ub 512)
// into the long flags that pflag understands.
func expandDashes(args []string) []string {
	long := map[string]string{}
	for _, p := range config.Table() {
		if p.Dash != "" {
			long["-"+p.Dash] = p.Flag()
		}
	}
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		name, value, has := strings.Cut(arg, "=")
		if l, ok := long[name]; ok {
			out[i] = l
			if has {
				out[i] = l + "=" + value
			}
		}
	}
	return out
}
