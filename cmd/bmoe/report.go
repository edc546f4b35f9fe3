package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/reports"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

func init() { register(newReportCommand) }

func newReportCommand(a *app) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report",
		Short: "what was predicted, what was measured, what the sweeps found",
		Long: `Writes the ledger's runs, experiments and verdicts as pages with plots. Without
--out one page goes to standard output.

--docs DIR rewrites documents from the sample ledger DIR/results/sample.db, or
from --db: DIR/results with the whole report, and the generated regions of the
markdown files under DIR and of the README beside it. With --check nothing is
written; what is out of date is shown and the exit code is 1.`,
		Example: `  bmoe report --out report
  bmoe report --experiment 3f9a --format html --out report
  bmoe report --format csv
  bmoe report --docs docs --check`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.verify(c.Flags().Changed); err != nil {
				return err
			}
			if f.docs != "" {
				return reportDocs(c.Context(), a, f, c.Flags().Changed("db"))
			}
			return reportAll(c.Context(), a, f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.out, "out", "", "folder to write the pages and plots to")
	fs.StringSliceVar(&f.formats, "format", nil, "md, html, csv, json (default: all with --out, else md)")
	fs.StringVar(&f.experiment, "experiment", "", "only this experiment (id or its beginning)")
	fs.StringVar(&f.model, "model", "", "only this model (id or its beginning)")
	fs.StringVar(&f.since, "since", "", "only runs since this date or time (RFC 3339)")
	fs.StringVar(&f.docs, "docs", "", "folder of documents to rewrite")
	fs.BoolVar(&f.check, "check", false, "with --docs: write nothing, fail when something is out of date")
	return cmd
}

func reportAll(ctx context.Context, a *app, f reportFlags) error {
	d, err := loadReport(ctx, a.dbPath, f)
	if err != nil {
		return err
	}
	if f.out == "" {
		return a.printReport(d, f.formats)
	}
	files, err := reports.Files(d, f.formats...)
	if err != nil {
		return err
	}
	if err := writeFiles(f.out, files); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s, %s, %s\n", filepath.Join(f.out, files[0].Name), analysis.Count(len(files), "file"), analysis.Count(len(d.Runs), "run"), analysis.Count(len(d.Experiments), "experiment"))
	return err
}

func (a *app) printReport(d reports.Data, formats []string) error {
	format := "md"
	if len(formats) == 1 {
		format = formats[0]
	}
	doc, err := reports.New(d)
	if err != nil {
		return err
	}
	page, err := reports.Render(doc, format)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(page.Bytes)
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
	if d.Runs, err = s.Runs(ctx, results.RunFilter{Experiment: f.experiment, Model: f.model, Since: f.since, IncludeVoid: true, Samples: true, Lean: true}); err != nil {
		return d, f.fault(err)
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
	if d.Profiles, err = s.Profiles(ctx, ""); err != nil {
		return d, ledgerFault(err)
	}
	if d.Machines, err = probedMachines(ctx, s, d.Profiles); err != nil {
		return d, ledgerFault(err)
	}
	if d.Histograms, err = s.Histograms(ctx, f.model); err != nil {
		return d, ledgerFault(err)
	}
	return d, nil
}

// probedMachines are the machines of profiles: no chosen run may be of them.
func probedMachines(ctx context.Context, s *results.Store, profiles []record.Profile) (out []record.Machine, err error) {
	seen := map[string]bool{}
	for _, p := range profiles {
		if p.MachineID == "" || seen[p.MachineID] {
			continue
		}
		seen[p.MachineID] = true
		m, err := s.Machine(ctx, p.MachineID)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
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
	return slices.DeleteFunc(all, func(e record.Experiment) bool { return !chosen[e.ID] }), nil
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
		return withHint(fmt.Errorf("report folder: %w", err), "give a folder that can be made")
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Bytes, 0o644); err != nil {
			return withHint(fmt.Errorf("report: %w", err), "give a folder that can be written to")
		}
	}
	return nil
}
