package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
)

func init() { register(newPlanCmd) }

// planSchema names the shape of the document `bmoe plan --json` prints.
const planSchema = "bmoe.plan/1"

// learnFacts adds what earlier runs taught; nil where there is no ledger.
var learnFacts func(*app) func(context.Context, *model.Model, *planner.Profile) error

// probeFlags say how far measuring for a plan may go.
type probeFlags struct {
	noIO  bool
	mem   bool
	here  bool          // devices are measured in this process
	limit time.Duration // of one device's probe
}

func (f *probeFlags) bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noIO, "no-probe-io", false, "plan without reading the drive")
	cmd.Flags().BoolVar(&f.mem, "probe-mem", false, "measure what memory can be kept, by holding it")
	f.bindDevices(cmd)
}

// bindDevices adds the flags of how devices are asked.
func (f *probeFlags) bindDevices(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.here, "no-isolated-probes", false, "measure devices in this process: a driver that crashes ends it")
	f.limit = childTime
	cmd.Flags().Var((*patience)(&f.limit), "probe-timeout", "how long the probe of one device may take")
}

// patience is a time that is not nothing.
type patience time.Duration

func (p *patience) String() string { return time.Duration(*p).String() }
func (p *patience) Type() string   { return "duration" }

func (p *patience) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("--probe-timeout %q: want a time such as 30s or 2m", text)
	}
	*p = patience(d)
	return nil
}

// probeAndPlan is the one way in which a command gets a plan.
func (a *app) probeAndPlan(ctx context.Context, cfg config.Config, pins planner.Pins, f probeFlags) (planner.Profile, planner.Plan, error) {
	opts := a.probeOptions(f)
	profile, plan, err := probes.ProbeAndPlan(ctx, cfg, pins, opts)
	if opts.Progress != nil {
		opts.Progress("")
	}
	return profile, plan, err
}

// probeFault is what ended a probe: the model's file, an interrupt, or itself.
func probeFault(ctx context.Context, err error) error {
	if errors.Is(err, probes.ErrModel) {
		return usageError{err, aModel}
	}
	return interrupted(ctx, err)
}

// measuring shows on a terminal which probe is running.
func measuring(w io.Writer) func(string) {
	if !isTerminal(w) {
		return nil
	}
	return func(what string) {
		if what != "" {
			what = "measuring: " + what
		}
		fmt.Fprintf(w, "\r\x1b[K%s", what)
	}
}

// noPlanFits is the end of a command that was to plan and found no room.
func noPlanFits(plan *planner.Plan) error {
	why := "the model does not fit"
	for _, d := range plan.Decisions {
		if d.Topic == "declined" {
			why = d.Reason
		}
	}
	return codedError{fmt.Errorf("no plan fits: %s", why), exitNoPlan, "`bmoe run` without --require-fit runs it mapped, as slowly as predicted"}
}

// planDocument is what --json prints.
type planDocument struct {
	Schema string `json:"schema"`
	planner.Plan
}

func newPlanCmd(a *app) *cobra.Command {
	var f probeFlags
	var asJSON, explain bool
	cmd := &cobra.Command{
		Use:   "plan -m MODEL",
		Short: "measure, decide every setting and say what it will cost",
		Long: `plan measures the machine and the model and prints each setting it would use,
where the decision comes from, what the run will hold, and what a token is
predicted to cost. It loads and runs nothing. The last line is the command that
does exactly what was planned.

A knob given by hand, as a flag or as a BMOE_* variable, is kept. The exit code
is 3 when no plan fits.`,
		Example: `  bmoe plan -m model.gguf
  bmoe plan -m model.gguf --plan-explain
  bmoe plan -m model.gguf --cache-policy lru --json`,
		Args: exactArgs(0, "no arguments (the model is -m FILE)"),
	}
	k := bindKnobs(cmd)
	f.bind(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().BoolVar(&explain, "plan-explain", false, "print the full reason of each decision")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, pins, err := k.resolve()
		if err != nil {
			return err
		}
		if cfg.Model == "" {
			return errNoModel
		}
		_, plan, err := a.probeAndPlan(cmd.Context(), cfg, pins, f)
		if err != nil {
			return probeFault(cmd.Context(), err)
		}
		if err := writePlan(a.stdout, &plan, asJSON, explain); err != nil {
			return err
		}
		if plan.Declined {
			return noPlanFits(&plan)
		}
		return nil
	}
	return cmd
}

func writePlan(w io.Writer, plan *planner.Plan, asJSON, explain bool) error {
	if asJSON {
		return printJSON(w, planDocument{planSchema, *plan})
	}
	return planner.WriteText(w, plan, explain)
}
