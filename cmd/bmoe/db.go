package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

func init() { register(newDBCommand) }

func newDBCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "db",
		Short: "look after the results database, share it, merge others' into it",
		Long: `The ledger is one SQLite file (see --db) that holds every plan, prediction, run
and verdict. Files of several machines merge into one; a row is the same row
wherever it comes from.`,
		Example: `  bmoe db info
  bmoe db merge team.db alice.db bob.db
  bmoe db export --format csv -o runs.csv`,
		RunE: func(_ *cobra.Command, args []string) error {
			return usageError{fmt.Errorf("db needs a command, got %q", strings.Join(args, " ")), "see `bmoe db --help`"}
		},
	}
	cmd.AddCommand(newDBInfo(a), newDBList(a), newDBCheck(a), newDBMerge(a), newDBExport(a), newDBImport(a), newDBVacuum(a), newDBPrune(a))
	return cmd
}

// withStore opens the ledger for the length of do.
func withStore(ctx context.Context, path string, opts results.Options, do func(*results.Store) error) (err error) {
	s, err := results.Open(ctx, path, opts)
	if err != nil {
		return ledgerFault(err)
	}
	defer func() {
		if cerr := s.Close(); err == nil && cerr != nil {
			err = ledgerFault(cerr)
		}
	}()
	return do(s)
}

var readOnly = results.Options{ReadOnly: true}

func jsonFlag(cmd *cobra.Command, v *bool) {
	cmd.Flags().BoolVar(v, "json", false, "print one JSON document")
}

func newDBCheck(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "whether everything in it is sound",
		Long: `Reads the whole database: pages, references, ids against the content they are
the hash of, packed samples, and verdicts and fits, which are computed again
from the runs they name. It changes nothing. A fault ends with exit code 5.`,
		Example: "  bmoe db check",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return withStore(c.Context(), a.dbPath, readOnly, func(s *results.Store) error {
				rep, err := s.Check(c.Context(), results.Recompute{Verdict: recomputeVerdict, Fit: recomputeFit})
				if err != nil {
					return ledgerFault(err)
				}
				if err := printCheck(a.stdout, rep, asJSON); err != nil {
					return err
				}
				if n := len(rep.Problems); n > 0 {
					return codedError{fmt.Errorf("%s: %d problems", s.Path(), n), exitData, "restore a copy, or merge what is sound into a new one: nothing was changed"}
				}
				return nil
			})
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func printCheck(w io.Writer, rep results.CheckReport, asJSON bool) error {
	if asJSON {
		return printJSON(w, rep)
	}
	for _, p := range rep.Problems {
		fmt.Fprintln(w, plain(p.String()))
	}
	for _, note := range rep.Notes {
		fmt.Fprintln(w, "note:", plain(note))
	}
	rows := 0
	for _, n := range rep.Rows {
		rows += n
	}
	_, err := fmt.Fprintf(w, "%d rows read, %d problems; %d verdicts and fits recomputed to the same, %d by methods not known here, %d out of date\n",
		rows, len(rep.Problems), rep.Recomputed, rep.Unknown, rep.Stale)
	return err
}

func recomputeVerdict(method string, e record.Experiment, runs []record.StoredRun) (record.Verdict, bool) {
	if method != experiments.Method {
		return record.Verdict{}, false
	}
	return experiments.Judge(e, runs), true
}

// recomputeFit fits again from the runs a fit names; ok is false when it was
// fitted by another method or its runs are not all here.
func recomputeFit(ctx context.Context, s *results.Store, f record.Fit) (record.Fit, bool, error) {
	policy, _ := f.Extra["policy"].(string)
	if f.Method != fitMethod || policy == "" {
		return f, false, nil
	}
	all, err := s.Runs(ctx, results.RunFilter{Model: f.ModelID, IncludeVoid: true})
	if err != nil {
		return f, false, err
	}
	in := fitInput{policy: policy, machine: f.MachineID}
	in.model.ID = f.ModelID
	for i := range all {
		if slices.Contains(f.Inputs, all[i].Run.RunID) {
			in.runs = append(in.runs, all[i])
		}
	}
	if len(in.runs) < len(f.Inputs) {
		return f, false, nil
	}
	again, err := refit(in)
	if err != nil { // what was fitted once no longer can be: not the same
		return record.Fit{}, true, nil //nolint:nilerr // reported as a problem by the caller
	}
	return again, true, nil
}

func newDBVacuum(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "vacuum",
		Short:   "give unused space back to the system",
		Example: "  bmoe db vacuum",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := mustExist(a.dbPath); err != nil {
				return err
			}
			return withStore(c.Context(), a.dbPath, results.Options{}, func(s *results.Store) error {
				before := fileSize(a.dbPath)
				if err := s.Vacuum(c.Context()); err != nil {
					return ledgerFault(err)
				}
				_, err := fmt.Fprintf(a.stdout, "%s: %s, was %s\n", a.dbPath, humanize.IBytes(fileSize(a.dbPath)), humanize.IBytes(before))
				return err
			})
		},
	}
}

// mustExist keeps commands that need a database from making an empty one.
func mustExist(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return withHint(fmt.Errorf("%s: no results are stored there", path), "run something first, or give --db the right path")
	}
	return nil
}

func fileSize(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return uint64(info.Size())
}

func newDBPrune(a *app) *cobra.Command {
	var o results.PruneOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "give up what is named, and nothing else",
		Long: `Deletes what the flags name, optionally only of runs before a time, and writes
that into the database's log. A run's measurements stay unless it was declared
void and --void-runs is given. Merging a copy that still has the rows brings
them back.`,
		Example: `  bmoe db prune --samples --tokens --before 2026-01-01 --dry-run
  bmoe db prune --text
  bmoe db prune --void-runs && bmoe db vacuum`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if named := o.Samples || o.Tokens || o.Text || o.Traces || o.VoidRuns || o.StaleOnly; !named {
				return usageError{errors.New("db prune: nothing is named"), "give one or more of --samples --tokens --text --traces --void-runs --stale-verdicts"}
			}
			if err := mustExist(a.dbPath); err != nil {
				return err
			}
			return withStore(c.Context(), a.dbPath, results.Options{}, func(s *results.Store) error {
				rep, err := s.Prune(c.Context(), o)
				if errors.Is(err, results.ErrInvalid) {
					return usageError{fmt.Errorf("--before: %w", err), "for example --before 2026-01-31"}
				}
				if err != nil {
					return ledgerFault(err)
				}
				return printPrune(a.stdout, rep, o.DryRun, asJSON)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Before, "before", "", "only of runs that began before this date or time (RFC 3339)")
	fs.BoolVar(&o.Samples, "samples", false, "per-token times")
	fs.BoolVar(&o.Tokens, "tokens", false, "generated token ids")
	fs.BoolVar(&o.Text, "text", false, "paths, prompts, answers, error output")
	fs.BoolVar(&o.Traces, "traces", false, "routing traces")
	fs.BoolVar(&o.VoidRuns, "void-runs", false, "runs that were declared void")
	fs.BoolVar(&o.StaleOnly, "stale-verdicts", false, "verdicts computed before later runs came in")
	fs.BoolVar(&o.DryRun, "dry-run", false, "only say what would go")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func printPrune(w io.Writer, rep results.PruneReport, dry, asJSON bool) error {
	if asJSON {
		return printJSON(w, rep)
	}
	verb := "gave up"
	if dry {
		verb = "would give up"
	}
	tables := make([]string, 0, len(rep.Rows))
	for table, n := range rep.Rows {
		tables = append(tables, fmt.Sprintf("%d of %s", n, table))
	}
	slices.Sort(tables)
	if len(tables) == 0 {
		tables = []string{"nothing"}
	}
	_, err := fmt.Fprintf(w, "%s %s (%s); `bmoe db vacuum` returns the space\n", verb, strings.Join(tables, ", "), humanize.IBytes(uint64(rep.Bytes)))
	return err
}

// databasesIn lists the *.db files of a folder, or the path itself.
func databasesIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, nil //nolint:nilerr // the ledger says what is wrong with it
	}
	found, err := filepath.Glob(filepath.Join(path, "*.db"))
	if err == nil && len(found) == 0 {
		err = withHint(fmt.Errorf("%s: no *.db files in the folder", path), "give database files, or a folder of them")
	}
	return found, err
}
