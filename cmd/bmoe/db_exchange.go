package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/exchange"
)

func newDBMerge(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge DST SRC...",
		Short: "copy into DST what the other databases have and it has not",
		Long: `Everything is merged in one transaction, or nothing is. Merging again changes
nothing, and the order does not matter. A source may be a folder: all its *.db
files. An id that stands for different content on the two sides is a conflict:
all are listed and the exit code is 5. Sources are only read; DST is made if it
is missing.`,
		Example: `  bmoe db merge team.db alice.db bob.db
  bmoe db merge team.db incoming/ --json`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{fmt.Errorf("db merge takes a database and one or more to merge into it, got %d arguments", len(args)), "for example `bmoe db merge team.db alice.db`"}
			}
			return dbMerge(c.Context(), a, args[0], args[1:], asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func dbMerge(ctx context.Context, a *app, dst string, from []string, asJSON bool) error {
	var sources []string
	for _, path := range from {
		found, err := databasesIn(path)
		if err != nil {
			return err
		}
		for _, f := range found {
			if !sameFile(f, dst) || len(found) == 1 { // DST may lie in the folder
				sources = append(sources, f)
			}
		}
	}
	return withStore(ctx, dst, results.Options{}, func(s *results.Store) error {
		rep, err := s.Merge(ctx, sources)
		if err != nil && !errors.Is(err, results.ErrConflict) {
			return ledgerFault(err)
		}
		if perr := printMerge(a.stdout, rep, asJSON); perr != nil {
			return perr
		}
		if err != nil {
			return ledgerFault(err)
		}
		return nil
	})
}

func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

func printMerge(w io.Writer, rep results.MergeReport, asJSON bool) error {
	if asJSON {
		return printJSON(w, rep)
	}
	for _, c := range rep.Conflicts {
		fmt.Fprintf(w, "conflict: %s %s of %s\n", c.Table, plain(c.ID), c.Source)
	}
	_, err := fmt.Fprintf(w, "%d rows inserted, %d already there, %d in conflict\n", rep.Inserted, rep.Present, len(rep.Conflicts))
	return err
}

// exportFormats write to one stream.
var exportFormats = map[string]func(io.Writer, *exchange.Ledger) error{
	"csv": exchange.CSV, "jsonl": exchange.JSONL, "benchfmt": exchange.Benchfmt,
	"llama-bench-jsonl": exchange.LlamaBenchJSONL, "llama-bench-sql": exchange.LlamaBenchSQL,
}

var allFormats = []string{"csv", "jsonl", "llama-bench-jsonl", "llama-bench-sql", "benchfmt", "parquet", "db"}

type exportFlags struct {
	format string
	out    string
	filter results.RunFilter
}

func newDBExport(a *app) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "write runs in a format other programs read",
		Long: `Formats: csv (a row a run), jsonl (a document a line), llama-bench-jsonl and
llama-bench-sql (the rows llama-bench would print), benchfmt (for benchstat),
parquet (a folder partitioned by machine and month), db (a database to share and
merge). No host name, path, prompt, generated text, token or routing trace is
written unless --include-text is given.`,
		Example: `  bmoe db export --format csv -o runs.csv
  bmoe db export --format benchfmt --experiment 3f9a | benchstat -col /io-threads -
  bmoe db export --format parquet -o fleet/
  bmoe db export --format db -o for-the-team.db`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error { return dbExport(c.Context(), a, f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.format, "format", "", strings.Join(allFormats, "|"))
	fs.StringVarP(&f.out, "out", "o", "", "file to write, or folder of parquet (default: standard output)")
	fs.StringVar(&f.filter.Experiment, "experiment", "", "only this experiment (id or its beginning)")
	fs.StringVar(&f.filter.Model, "model", "", "only this model (id or its beginning)")
	fs.StringVar(&f.filter.Machine, "machine", "", "only this machine (id or its beginning)")
	fs.StringVar(&f.filter.Since, "since", "", "only runs since this date or time (RFC 3339)")
	fs.BoolVar(&f.filter.IncludeVoid, "include-void", false, "also runs that were declared void")
	fs.BoolVar(&f.filter.Text, "include-text", false, "also paths, prompts, generated text, tokens and routing traces")
	return cmd
}

func dbExport(ctx context.Context, a *app, f exportFlags) error {
	if !slices.Contains(allFormats, f.format) {
		return usageError{fmt.Errorf("--format %q is none of %s", f.format, strings.Join(allFormats, ", ")), "for example --format csv"}
	}
	if f.out == "" && (f.format == "parquet" || f.format == "db") {
		return usageError{fmt.Errorf("--format %s writes files", f.format), "give -o a path"}
	}
	return withStore(ctx, a.dbPath, readOnly, func(s *results.Store) error {
		if f.format == "db" {
			return exportDB(ctx, a, s, f)
		}
		f.filter.Samples = f.format == "parquet" || f.format == "jsonl"
		l, err := s.Ledger(ctx, f.filter)
		for _, kind := range []error{results.ErrInvalid, results.ErrNotFound, results.ErrAmbiguous} {
			if errors.Is(err, kind) { // of a flag: the export itself needs nothing by name
				return usageError{err, "`bmoe db list` and `bmoe report` show what there is"}
			}
		}
		if err != nil {
			return ledgerFault(err)
		}
		if f.format != "parquet" {
			return a.writeExport(f.out, func(w io.Writer) error { return exportFormats[f.format](w, l) })
		}
		files, err := exchange.Parquet(f.out, l)
		if err != nil {
			return withHint(fmt.Errorf("parquet: %w", err), "give -o a folder that can be written to")
		}
		_, err = fmt.Fprintf(a.stdout, "%s: %d files, %d runs\n", f.out, len(files), len(l.Runs))
		return err
	})
}

func exportDB(ctx context.Context, a *app, s *results.Store, f exportFlags) error {
	if f.filter != (results.RunFilter{Text: f.filter.Text}) {
		return usageError{errors.New("--format db exports the whole database"), "leave out --experiment, --model, --machine, --since and --include-void"}
	}
	rep, err := s.ExportDB(ctx, f.out, f.filter.Text)
	if errors.Is(err, fs.ErrExist) {
		return usageError{err, "give -o another path"}
	}
	if err != nil {
		return ledgerFault(err)
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %d rows\n", f.out, rep.Inserted)
	return err
}

// writeExport writes to standard output, or to a file that is there whole or
// not at all.
func (a *app) writeExport(path string, write func(io.Writer) error) error {
	if path == "" {
		w := bufio.NewWriter(a.stdout)
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // 0600
	if err != nil {
		return withHint(fmt.Errorf("-o %s: %w", path, err), "give -o a path in a folder that can be written to")
	}
	w := bufio.NewWriter(f)
	err = errors.Join(write(w), w.Flush(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return withHint(fmt.Errorf("-o %s: %w", path, err), "free some space, or give -o another path")
	}
	return nil
}

func newDBImport(a *app) *cobra.Command {
	var machine, model string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "take in what llama-bench measured (-o jsonl)",
		Long: `Reads the output of llama-bench -o jsonl ("-" reads standard input) and stores a
run for every row, marked as llama-bench's, beside our own. llama-bench does not
say which machine or model file it ran on so that it could be matched: --machine
and --model say that it was one of those the database knows.`,
		Example: `  llama-bench -m model.gguf -o jsonl > peer.jsonl
  bmoe db import peer.jsonl --machine 3f9a --model 77c0`,
		Args: exactArgs(1, "one file"),
		RunE: func(c *cobra.Command, args []string) error {
			return dbImport(c.Context(), a, args[0], machine, model, asJSON)
		},
	}
	cmd.Flags().StringVar(&machine, "machine", "", "it ran on this machine (id or its beginning; see `bmoe db list`)")
	cmd.Flags().StringVar(&model, "model", "", "it ran this model (id or its beginning)")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func dbImport(ctx context.Context, a *app, path, machine, model string, asJSON bool) error {
	in, name := a.stdin, "standard input"
	if path != "-" {
		f, err := openInput(path)
		if err != nil {
			return withHint(fmt.Errorf("import: %w", err), "give the file that llama-bench -o jsonl wrote")
		}
		defer f.Close()
		in, name = f, path
	}
	return withStore(ctx, a.dbPath, results.Options{}, func(s *results.Store) error {
		known, err := knownOf(ctx, s, machine, model)
		if err != nil {
			return err
		}
		runs, notes, err := exchange.ReadLlamaBench(in, known)
		if err != nil {
			return withHint(fmt.Errorf("%s: %w", name, err), "nothing was imported; write the file with llama-bench -o jsonl")
		}
		rep, err := s.Import(ctx, runs, filepath.Base(name))
		if err != nil {
			return ledgerFault(err)
		}
		for _, note := range notes {
			fmt.Fprintln(a.stderr, "note:", plain(note))
		}
		return printMerge(a.stdout, rep, asJSON)
	})
}

func knownOf(ctx context.Context, s *results.Store, machine, model string) (exchange.Known, error) {
	var known exchange.Known
	if machine != "" {
		m, err := s.Machine(ctx, machine)
		if err != nil {
			return known, usageError{fmt.Errorf("--machine: %w", err), "`bmoe db list` shows the machines"}
		}
		known.Machine = &m
	}
	if model != "" {
		m, err := s.Model(ctx, model)
		if err != nil {
			return known, usageError{fmt.Errorf("--model: %w", err), "`bmoe db list` shows the models"}
		}
		known.Model = &m
	}
	return known, nil
}
