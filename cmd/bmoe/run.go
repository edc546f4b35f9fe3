package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/engine"
)

func init() { register(newRunCmd) }

// runFlags are what `bmoe run` takes beside the knobs.
type runFlags struct {
	auto        bool
	explain     bool
	planOnly    bool
	requireFit  bool
	probe       probeFlags
	noRecord    bool
	asJSON      bool
	interactive bool
	verbose     bool
	configJSON  string
	repeat      int
	csv         string
}

func newRunCmd(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run -m MODEL -p TEXT",
		Short: "generate text, resident or with streamed experts",
		Long: `run loads a model and generates text. With --auto the machine and the model are
measured first, every setting is planned from the facts, and the plan's
prediction is stored before the run and compared with what was measured after
it. A knob given by hand, as a flag or as a BMOE_* variable, is never changed.

The text goes to standard output as it is generated; progress and the summary
go to standard error. Each run is stored in the results database (--db).`,
		Example: `  bmoe run -m model.gguf -p "Once upon a time" -n 64 --auto
  bmoe run -m model.gguf -p "Once upon a time" -n 64 --moe-stream --cache-mb 500
  bmoe run -m model.gguf -f prompt.txt --auto --plan-explain
  bmoe run -m model.gguf -i --chat --auto`,
		Args: exactArgs(0, "no arguments (the prompt is -p TEXT or -f FILE)"),
	}
	k := bindKnobs(cmd)
	f.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := newRunner(cmd.Context(), a, &f, k)
		if err != nil {
			return err
		}
		return r.run(cmd.Context())
	}
	return cmd
}

func (f *runFlags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.auto, "auto", false, "measure the machine and plan every setting")
	fs.BoolVar(&f.explain, "plan-explain", false, "print the plan with its reasons (implies --auto)")
	fs.BoolVar(&f.planOnly, "plan-only", false, "print the plan and stop")
	fs.BoolVar(&f.requireFit, "require-fit", false, "do not run when no plan fits (exit code 3)")
	f.probe.bind(cmd)
	fs.BoolVar(&f.noRecord, "no-record", false, "do not store the run")
	fs.BoolVar(&f.asJSON, "json", false, "print one JSON document instead of the text")
	fs.BoolVarP(&f.interactive, "interactive", "i", false, "go on with further turns from standard input")
	fs.BoolVar(&f.verbose, "verbose", false, "print llama.cpp's log")
	fs.StringVar(&f.configJSON, "config-json", "", "read the resolved configuration from a JSON file (- for standard input)")
	fs.IntVar(&f.repeat, "repeat", 1, "run that many times and judge the plan's prediction (needs --auto)")
	fs.StringVar(&f.csv, "csv", "", "write one row per decoded token to this file, the plan in its header")
}

// newRunner checks the flags against each other and reads the configuration.
func newRunner(ctx context.Context, a *app, f *runFlags, k *knobs) (*runner, error) {
	f.auto = f.auto || f.explain || f.planOnly || f.requireFit
	r := &runner{app: a, flags: f}
	var err error
	if f.configJSON != "" && len(k.pins) > 0 {
		name := slices.Sorted(maps.Keys(k.pins))[0]
		return nil, usageError{fmt.Errorf("--config-json and --%s: the document has a value for every knob", name), "write it into the document"}
	}
	if f.configJSON != "" {
		r.cfg, r.pins, err = readConfigJSON(ctx, a.stdin, f.configJSON)
	} else {
		r.cfg, r.pins, err = k.resolve()
	}
	if err != nil {
		return nil, err
	}
	if r.cfg.Model == "" {
		return nil, errNoModel
	}
	if f.repeat < 1 || f.repeat > 1 && !f.auto {
		return nil, usageError{fmt.Errorf("--repeat %d: want 1 or more, and --auto with it", f.repeat), "add --auto, or leave --repeat out"}
	}
	if f.csv != "" && f.repeat > 1 {
		return nil, usageError{errors.New("--csv with --repeat: it is of one run"), "leave one of them out; `bmoe db export` writes what is stored of several"}
	}
	r.prompt, err = r.readPrompt(ctx)
	return r, err
}

// readPrompt is -p, or the file of -f, or nothing with -i.
func (r *runner) readPrompt(ctx context.Context) (string, error) {
	if r.cfg.File != "" {
		if r.cfg.Prompt != "" {
			return "", usageError{errors.New("-p and -f given together"), "give one of them"}
		}
		return promptFile(ctx, r.app.stdin, r.cfg.File)
	}
	if r.cfg.Prompt == "" && !r.flags.interactive && !r.flags.planOnly {
		return "", usageError{errors.New("no prompt given"), "give one with -p TEXT or -f FILE, or talk with -i"}
	}
	return r.cfg.Prompt, nil
}

// openError adds what to type next to what went wrong at the engine's door.
func openError(err error) error {
	if errors.Is(err, engine.ErrDense) {
		return codedError{err, exitUsage, "streaming is for Mixture-of-Experts models"}
	}
	return err
}

// interrupted turns a cancelled context into exit code 130.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return codedError{errors.New("interrupted"), exitInterrupted, ""}
	}
	return err
}
