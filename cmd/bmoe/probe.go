package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/probes/backends"
)

// probeSchema names the shape of the document `bmoe probe --json` prints.
const probeSchema = "bmoe.probe/1"

// childTime is how long a probe's own process may take to answer.
const childTime = 2 * time.Minute

// childEnv tells a child of a probe that its standard input closes when its
// parent is gone.
const childEnv = "BMOE_PROBE_CHILD"

func init() { register(newProbe) }

// parent is what a child watches to know that its parent is gone; nil when a
// person started it.
func (a *app) parent() io.Reader {
	if os.Getenv(childEnv) == "" {
		return nil
	}
	return a.stdin
}

func newProbe(a *app) *cobra.Command {
	var asJSON bool
	var f probeFlags
	var hold, device string
	cmd := &cobra.Command{
		Use:   "probe -m MODEL",
		Short: "measure what a plan is made of, or say what is unknown",
		Long: `probe prints every fact a plan may use: of the model, without loading it, of
memory and what takes it back, of locks, cores, processors and devices, and of
the drive under the experts. What it could not find out is unknown, with the
reason and the measurement that would settle it.

It reads about 2 GB from the model's drive (--no-io: nothing) and holds little
memory (--mem: as much as the machine lets it keep, then gives all of it back).`,
		Example: `  bmoe probe -m model.gguf
  bmoe probe -m model.gguf --no-io --json
  bmoe probe -m model.gguf --mem
  bmoe probe -m model.gguf --device CPU
  bmoe probe -m model.gguf --device RPC0 --rpc 192.168.1.4:50052`,
		Args: exactArgs(0, "no arguments; name the model with -m"),
	}
	k := bindKnobs(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&asJSON, "json", false, "print one JSON document")
	fs.BoolVar(&f.mem, "mem", false, "hold memory in steps until some is taken back (intrusive)")
	fs.BoolVar(&f.noIO, "no-io", false, "do not read the model's drive")
	fs.BoolVar(&f.mem, "probe-mem", false, "same as --mem")
	fs.BoolVar(&f.noIO, "no-probe-io", false, "same as --no-io")
	f.bindDevices(cmd)
	fs.StringVar(&device, backends.DeviceFlag, "", "measure one device only (CPU, Vulkan0, RPC0...), in this process, and print one line of JSON")
	fs.StringVar(&hold, probes.HoldFlag, "", "hold memory as a child of another probe")
	for _, name := range []string{"probe-mem", "no-probe-io", probes.HoldFlag} {
		fs.Lookup(name).Hidden = true
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if hold != "" {
			return probes.HoldChild(cmd.Context(), hold, a.stdin, a.stdout)
		}
		cfg, _, err := k.resolve()
		if err != nil {
			return err
		}
		if device != "" {
			return backends.Child(cmd.Context(), cfg, device, a.parent(), a.stdout)
		}
		if cfg.Model == "" {
			return errNoModel
		}
		opts := a.probeOptions(f)
		profile, err := probes.Probe(cmd.Context(), cfg, opts)
		if opts.Progress != nil {
			opts.Progress("")
		}
		if err != nil {
			return probeFault(cmd.Context(), err)
		}
		if asJSON {
			return writeFactsJSON(a.stdout, &profile)
		}
		return writeFacts(a.stdout, &profile)
	}
	return cmd
}

// probeOptions are the options every command that plans uses: progress to a
// terminal, the engine and the ledger where the build has them, and this
// executable for what must happen in a child.
func (a *app) probeOptions(f probeFlags) probes.Options {
	opts := probes.Options{NoIO: f.noIO, Mem: f.mem, Progress: measuring(a.stderr)}
	if learnFacts != nil {
		opts.Learn = learnFacts(a)
	}
	if exe, err := os.Executable(); err == nil {
		opts.Hold = probes.Self(exe, childTime, childEnv+"=1")
		ask := probes.Self(exe, f.limit, childEnv+"=1")
		if f.here {
			ask = nil
		}
		e := backends.New(ask)
		e.Greet = f.limit
		opts.Engine = e
	}
	return opts
}

func writeFactsJSON(w io.Writer, p *planner.Profile) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Schema string             `json:"schema"`
		Facts  []planner.FactLine `json:"facts"`
	}{probeSchema, p.Facts()})
}

// writeFacts prints a line per fact, then what is owed.
func writeFacts(w io.Writer, p *planner.Profile) error {
	var b strings.Builder
	var unknown []planner.FactLine
	for _, f := range p.Facts() {
		if f.State == "unknown" {
			unknown = append(unknown, f)
			continue
		}
		fmt.Fprintf(&b, "%-27s %-24s [%s]%s\n", f.Name, probes.FactText(f), f.Provenance, factMargin(f))
		if f.Reason != "" {
			fmt.Fprintf(&b, "%28s%s\n", "", f.Reason)
		}
	}
	if len(unknown) > 0 {
		fmt.Fprintf(&b, "\nunknown, and what would settle it:\n")
	}
	for _, f := range unknown {
		fmt.Fprintf(&b, "%-27s %s\n", f.Name, f.Reason)
		if f.Owed != "" {
			fmt.Fprintf(&b, "%28sowed: %s\n", "", f.Owed)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// factMargin is a fact's spread and cost, where it has them.
func factMargin(f planner.FactLine) string {
	var s string
	if f.Spread > 0 {
		s += fmt.Sprintf(" spread %.0f %%", 100*f.Spread)
	}
	if f.CostS >= 0.001 {
		s += fmt.Sprintf(" %.3f s", f.CostS)
	}
	return s
}
