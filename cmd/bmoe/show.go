package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

func init() { register(newShowCommand) }

func newShowCommand(a *app) *cobra.Command {
	var width int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "explain one stored run on a page",
		Long: `Shows what a run was asked to do and why, what was predicted before it and what
was measured, where its time went, and what it held. RUN is a run's id or the
beginning of it. Colours are left out when the output is not a terminal or
NO_COLOR is set.`,
		Example: `  bmoe show 3f9a
  bmoe show 3f9a --json`,
		Args: exactArgs(1, "one run"),
		RunE: func(c *cobra.Command, args []string) error {
			return withStore(c.Context(), a.dbPath, readOnly, func(s *results.Store) error {
				return showRun(c.Context(), a, s, args[0], width, asJSON)
			})
		},
	}
	cmd.Flags().IntVar(&width, "width", 0, "columns of the page (default: the terminal's, else 80)")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func showRun(ctx context.Context, a *app, s *results.Store, id string, width int, asJSON bool) error {
	r, err := s.Run(ctx, id)
	if errors.Is(err, results.ErrNotFound) || errors.Is(err, results.ErrAmbiguous) {
		return usageError{err, "`bmoe report` lists the runs"}
	}
	if err != nil {
		return ledgerFault(err)
	}
	if asJSON {
		return printJSON(a.stdout, r)
	}
	var exp *record.Experiment
	if r.ExperimentID != "" {
		e, err := s.Experiment(ctx, r.ExperimentID)
		if err != nil {
			return ledgerFault(err)
		}
		exp = &e
	}
	p := &page{width: pageWidth(a.stdout, width), colour: colourful(a.stdout)}
	p.run(&r, exp)
	_, err = io.WriteString(a.stdout, p.String())
	return err
}

// colourful follows no-color.org: a terminal, and NO_COLOR unset or empty.
func colourful(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

func ids(label, id string) string { return fmt.Sprintf("%s %.12s", label, id) }
