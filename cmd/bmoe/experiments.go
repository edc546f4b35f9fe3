package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

func init() { register(newExperimentsCmd) }

func newExperimentsCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiments",
		Short: "list, show and void the experiments of the ledger",
		Long: `experiments lists what was asked and found. An experiment is registered before
its first run and never changes; declaring it void keeps it, with the reason.`,
		Example: `  bmoe experiments list
  bmoe experiments show 3f9a2c
  bmoe experiments void 3f9a2c --why "the drive was being backed up"`,
		Args: noSuchSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return listExperiments(cmd.Context(), a, false) },
	}
	cmd.AddCommand(newExperimentsList(a), newExperimentsShow(a), newExperimentsVoid(a))
	return cmd
}

func noSuchSubcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s has no command %q", c.CommandPath(), args[0]), "it has list, show ID and void ID --why TEXT"}
}

func newExperimentsList(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "list all experiments, oldest first",
		Example: "  bmoe experiments list --json",
		Args:    exactArgs(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return listExperiments(cmd.Context(), a, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func newExperimentsShow(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "show an experiment: its question, arms, runs and verdict",
		Example: "  bmoe experiments show 3f9a2c",
		Args:    exactArgs(1, "one experiment id (its first letters are enough)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showExperiment(cmd.Context(), a, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func newExperimentsVoid(a *app) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: "void ID --why TEXT", Short: "declare that an experiment does not count, and why",
		Example: `  bmoe experiments void 3f9a2c --why "the drive was being backed up"`,
		Args:    exactArgs(1, "one experiment id (its first letters are enough)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return voidExperiment(cmd.Context(), a, args[0], why)
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "the reason, kept with the experiment")
	return cmd
}

// experimentLine is one experiment in a list.
type experimentLine struct {
	ID         string   `json:"id"`
	Registered string   `json:"registered_at"`
	Kind       string   `json:"kind"`
	Lever      string   `json:"lever"`
	Question   string   `json:"question"`
	Runs       int      `json:"runs"`
	Left       int      `json:"left"`
	Status     string   `json:"status"` // concluded, unfinished, void
	Verdicts   []string `json:"verdicts"`
	Void       string   `json:"void,omitempty"`
}

func listExperiments(ctx context.Context, a *app, asJSON bool) error {
	store, err := openStore(ctx, a.dbPath, results.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer store.Close()
	all, err := store.Experiments(ctx)
	if err != nil {
		return err
	}
	lines := make([]experimentLine, 0, len(all))
	for i := range all {
		line, err := lineOf(ctx, store, &all[i])
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	if asJSON {
		return printJSON(a.stdout, map[string]any{"schema": "bmoe.experiments/1", "experiments": lines})
	}
	if len(lines) == 0 {
		fmt.Fprintln(a.stdout, "no experiments yet; `bmoe sweep -m model.gguf --lever io-threads` makes one")
		return nil
	}
	t := grid{numbers: []bool{2: true}}
	t.add("id", "registered", "runs", "status", "question")
	for _, l := range lines {
		t.add(experiments.Short(l.ID), l.Registered, strconv.Itoa(l.Runs), plain(l.words()), plain(l.Question))
	}
	return t.write(a.stdout, terminalWidth(a.stdout))
}

func (l experimentLine) words() string {
	switch l.Status {
	case "concluded":
		return fmt.Sprint(l.Verdicts)
	case "unfinished":
		return fmt.Sprintf("%d runs left", l.Left)
	}
	return l.Status
}

func lineOf(ctx context.Context, store *results.Store, e *record.Experiment) (experimentLine, error) {
	st, err := experimentStatus(ctx, store, e)
	if err != nil {
		return experimentLine{}, err
	}
	l := experimentLine{
		ID: e.ID, Registered: e.RegisteredAt.Format("2006-01-02 15:04"), Kind: e.Kind, Lever: e.Lever,
		Question: e.Question, Runs: st.runs, Left: st.left, Status: "unfinished", Verdicts: []string{},
	}
	if st.verdict != nil {
		l.Status = "concluded"
		for _, c := range append(st.verdict.Comparisons, st.verdict.Predictions...) {
			l.Verdicts = append(l.Verdicts, c.Verdict)
		}
	}
	if l.Void, err = voided(ctx, store, e.ID); err != nil {
		return l, err
	}
	if l.Void != "" {
		l.Status = "void"
	}
	return l, nil
}

// voided is why an experiment does not count, "" when it does.
func voided(ctx context.Context, store *results.Store, id string) (string, error) {
	events, err := store.Events(ctx, id)
	if err != nil {
		return "", err
	}
	why := ""
	for _, ev := range events {
		if ev.Kind == record.EventVoid {
			why = ev.Why
		}
	}
	return why, nil
}

func showExperiment(ctx context.Context, a *app, id string, asJSON bool) error {
	store, err := openStore(ctx, a.dbPath, results.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer store.Close()
	e, err := store.Experiment(ctx, id)
	if err != nil {
		return codedError{err, exitUsage, "`bmoe experiments list` shows what there is"}
	}
	runs, err := results.Conductor{Store: store}.Runs(ctx, e.ID)
	if err != nil {
		return err
	}
	st, err := experimentStatus(ctx, store, &e)
	if err != nil {
		return err
	}
	v := record.Verdict{}
	if st.verdict != nil {
		v = *st.verdict
	}
	if asJSON {
		d := sweepDocumentOf(e, v, runs)
		d.Schedule = e.Schedule
		return printJSON(a.stdout, d)
	}
	why, err := voided(ctx, store, e.ID)
	if err != nil {
		return err
	}
	if why != "" {
		fmt.Fprintf(a.stdout, "void: %s\n", why)
	}
	fmt.Fprintf(a.stdout, "registered %s; refuted if %s\n", e.RegisteredAt.Format("2006-01-02 15:04:05 MST"), e.Falsifier)
	if st.verdict == nil {
		fmt.Fprintf(a.stdout, "unfinished: %d of %d runs are left; go on with: bmoe sweep --resume %s%s\n", st.left, len(e.Schedule), experiments.Short(e.ID), a.dbArgument())
	}
	return writeSweep(a.stdout, e, v, runs)
}

func voidExperiment(ctx context.Context, a *app, id, why string) error {
	if why == "" {
		return usageError{errors.New("--why is missing: a void experiment needs its reason"), `for instance --why "the drive was being backed up"`}
	}
	store, err := openStore(ctx, a.dbPath, results.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	e, err := store.Experiment(ctx, id)
	if err != nil {
		return codedError{err, exitUsage, "`bmoe experiments list` shows what there is"}
	}
	if err := store.Void(ctx, e.ID, why); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "experiment %s is void: %s\n", experiments.Short(e.ID), why)
	return nil
}
