package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/reports"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

func init() { register(newReportCommand) }

type reportFlags struct {
	out        string
	experiment string
	model      string
	since      string
}

func newReportCommand(a *app) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report",
		Short: "what was predicted, what was measured, what the sweeps found",
		Long: `Writes the ledger's runs, experiments and verdicts as a page with plots. Without
--out the page goes to standard output, as markdown.`,
		Example: `  bmoe report --out report
  bmoe report --experiment 3f9a --out report`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return reportAll(c.Context(), a, f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.out, "out", "", "folder to write the page and its plots to")
	fs.StringVar(&f.experiment, "experiment", "", "only this experiment (id or its beginning)")
	fs.StringVar(&f.model, "model", "", "only this model (id or its beginning)")
	fs.StringVar(&f.since, "since", "", "only runs since this date or time (RFC 3339)")
	return cmd
}

func reportAll(ctx context.Context, a *app, f reportFlags) error {
	d, err := loadReport(ctx, a.dbPath, f)
	if err != nil {
		return err
	}
	if f.out == "" {
		return printReport(a.stdout, d)
	}
	files, err := reports.Files(d)
	if err != nil {
		return err
	}
	if err := writeFiles(f.out, files); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %d files, %d runs, %d experiments\n", filepath.Join(f.out, files[0].Name), len(files), len(d.Runs), len(d.Experiments))
	return err
}

func printReport(w io.Writer, d reports.Data) error {
	doc, err := reports.New(d)
	if err != nil {
		return err
	}
	page, err := doc.Markdown("")
	if err != nil {
		return err
	}
	_, err = w.Write(page)
	return err
}

// loadReport reads what the flags choose.
func loadReport(ctx context.Context, path string, f reportFlags) (d reports.Data, err error) {
	s, err := results.Open(ctx, path, results.Options{ReadOnly: true})
	if err != nil {
		return d, ledgerFault(err)
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	if d.Runs, err = s.Runs(ctx, results.RunFilter{Experiment: f.experiment, Model: f.model, Since: f.since, IncludeVoid: true, Samples: true}); err != nil {
		return d, ledgerFault(err)
	}
	if d.Experiments, err = chosenExperiments(ctx, s, f, d.Runs); err != nil {
		return d, ledgerFault(err)
	}
	if d.Verdicts, err = s.Verdicts(ctx, f.experiment); err != nil {
		return d, ledgerFault(err)
	}
	if d.Events, err = s.Events(ctx, ""); err != nil {
		return d, ledgerFault(err)
	}
	return d, nil
}

// chosenExperiments returns the experiment asked for, all of them, or those the
// chosen runs belong to.
func chosenExperiments(ctx context.Context, s *results.Store, f reportFlags, runs []record.StoredRun) ([]record.Experiment, error) {
	if f.experiment != "" {
		e, err := s.Experiment(ctx, f.experiment)
		return []record.Experiment{e}, err
	}
	all, err := s.Experiments(ctx)
	if err != nil || (f.model == "" && f.since == "") {
		return all, err
	}
	chosen := map[string]bool{}
	for i := range runs {
		chosen[runs[i].ExperimentID] = true
	}
	var out []record.Experiment
	for _, e := range all {
		if chosen[e.ID] {
			out = append(out, e)
		}
	}
	return out, nil
}

// ledgerFault gives an error of the ledger its exit code and hint.
func ledgerFault(err error) error {
	code := exitFailure
	if results.IsDataFault(err) {
		code = exitData
	}
	return codedError{err, code, results.Hint(err)}
}

func writeFiles(dir string, files []reports.File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return withHint(fmt.Errorf("report folder: %w", err), "give --out a folder that can be made")
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Bytes, 0o644); err != nil {
			return withHint(fmt.Errorf("report: %w", err), "give --out a folder that can be written to")
		}
	}
	return nil
}
