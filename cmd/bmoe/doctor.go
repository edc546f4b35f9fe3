package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/engine"
	"github.com/bmoe/bmoe/probes"
)

func init() { register(newDoctorCommand) }

func newDoctorCommand(a *app) *cobra.Command {
	var asJSON bool
	c := checkup{libraries: engine.Libraries, host: probes.Local(), locks: probes.Local().Locks, directReads: probes.DirectReads}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "what is missing on this machine, and how to get it",
		Long: `Looks at everything a run depends on and changes nothing. It ends with exit code
1 when something is missing without which nothing runs; a warning only costs
speed, or is worth knowing.`,
		Example: "  bmoe doctor\n  bmoe doctor -m model.gguf --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.db = a.dbPath
			return diagnose(cmd.Context(), a.stdout, c, asJSON)
		},
	}
	cmd.Flags().StringVarP(&c.model, "model", "m", "", "also look at this model and the drive it is on")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// The states of a finding.
const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateMissing = "missing"
)

// finding is one thing looked at.
type finding struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to do, unless the state is ok
}

func fine(name, detail string) finding { return finding{name, stateOK, detail, ""} }

// doctorDoc is the document of doctor --json.
type doctorDoc struct {
	Schema   string    `json:"schema"`
	OK       bool      `json:"ok"`
	Findings []finding `json:"findings"`
}

func diagnose(ctx context.Context, w io.Writer, c checkup, asJSON bool) error {
	doc := doctorDoc{Schema: "bmoe.doctor/1", Findings: c.findings(ctx)}
	var missing []string
	for _, f := range doc.Findings {
		if f.State == stateMissing {
			missing = append(missing, f.Name)
		}
	}
	doc.OK = len(missing) == 0
	if err := printFindings(w, doc, asJSON); err != nil {
		return err
	}
	if !doc.OK {
		return withHint(fmt.Errorf("missing: %s", strings.Join(missing, ", ")), "do what is said above, then run `bmoe doctor` again")
	}
	return nil
}

func printFindings(w io.Writer, doc doctorDoc, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(doc)
	}
	var b strings.Builder
	for _, f := range doc.Findings {
		fmt.Fprintf(&b, "%-8s %-13s %s\n", f.State, f.Name, f.Detail)
		if f.Fix != "" {
			fmt.Fprintf(&b, "%22s -> %s\n", "", f.Fix)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
