package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/engine/cachepolicy"
	"github.com/bmoe/bmoe/engine/trace"
	"github.com/bmoe/bmoe/reports"
	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

func init() { register(newFitCommand) }

// fitMethod versions what a stored fit was computed by.
const fitMethod = "hitfit/1"

// fitLevel is the nominal level of the intervals and of the shape's test.
const fitLevel = 0.95

type fitFlags struct {
	model    string
	all      bool
	trace    string
	policy   string
	json     bool
	plot     string
	noRecord bool
}

func newFitCommand(a *app) *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit",
		Short: "how the hit rate follows from the cache's size, and how good predictions were",
		Long: `Fits the hit rate h against the share f of the routed experts held: the clamped
line min(1, k f) that the planner uses, the saturating 1 - exp(-a f), and the
measured curve where there is one. It says plainly when the line is the wrong
shape. Fits from the ledger are stored there, and the next plan reads them.`,
		Example: `  bmoe fit -m model.gguf
  bmoe fit --all
  bmoe fit --trace route.csv --plot plots
  bmoe fit --trace route.csv -m model.gguf`,
		Args: exactArgs(0, "no arguments; the model is -m MODEL"),
		RunE: func(c *cobra.Command, _ []string) error { return fitCommand(c.Context(), a, f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.model, "model", "m", "", "fit this model's runs (GGUF file, or an id or name in the ledger)")
	fs.BoolVar(&f.all, "all", false, "fit all models' runs together, and each class of expert count and width")
	fs.StringVar(&f.trace, "trace", "", "fit the LRU curve of this routing trace; with -m its hit curves are stored for that model")
	fs.StringVar(&f.policy, "policy", "", "cache policy whose runs are fitted (default: the one with most runs)")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.StringVar(&f.plot, "plot", "", "folder to write the plot to, as SVG and PNG")
	fs.BoolVar(&f.noRecord, "no-record", false, "do not store the fit")
	return cmd
}

// fitInput is what is fitted.
type fitInput struct {
	source  string
	policy  string
	points  []analysis.HitPoint
	curve   func(f float64) float64
	ids     []string           // of the runs
	runs    []record.StoredRun // to score their predictions
	machine string             // of the fit, where there is one
	model   record.Model       // the same
}

func fitCommand(ctx context.Context, a *app, f fitFlags) error {
	if f.all == (f.model != "" || f.trace != "") {
		return usageError{errors.New("fit takes -m MODEL, --trace FILE or --all"), "for example `bmoe fit --all`"}
	}
	if f.policy != "" && !slices.Contains(cachepolicy.Names(), f.policy) {
		return usageError{fmt.Errorf("--policy %q is no cache policy", f.policy), fmt.Sprintf("give one of %v", cachepolicy.Names())}
	}
	if f.trace != "" {
		return fitTrace(ctx, a, f)
	}
	return fitLedger(ctx, a, f)
}

func fitTrace(ctx context.Context, a *app, f fitFlags) error {
	if f.policy != "" && f.policy != cachepolicy.LRU {
		return usageError{fmt.Errorf("--policy %s: a trace's curve is LRU's", f.policy), "`bmoe trace replay` gives the other policies"}
	}
	t, err := readTrace(ctx, f.trace)
	if err != nil {
		return err
	}
	r, _ := analysis.NewRouting(t)
	points, curve := analysis.TraceHits(r, analysis.FitBudgets(r), t.Model)
	in := fitInput{source: "trace " + filepath.Base(f.trace), policy: cachepolicy.LRU, points: points, curve: curve}
	in.model.Name = t.Model
	doc, fit, err := fitDocument(in)
	if err != nil {
		return withHint(fmt.Errorf("trace %s: %w", f.trace, err), "record more tokens: `bmoe run --route-trace FILE -n 128`")
	}
	if f.model != "" && !f.noRecord {
		if doc.Curves, err = storeCurves(ctx, a.dbPath, f.model, t, r); err != nil {
			return err
		}
	}
	return a.printFit(f, doc, in, fit)
}

// storeCurves leaves a trace's hit curves in the ledger, where the next plan
// for the model finds them. It returns the policies they are of.
func storeCurves(ctx context.Context, db, name string, t *trace.Trace, r *analysis.Routing) (policies []string, err error) {
	s, err := openStore(ctx, db, results.Options{})
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	m, known, err := fileModel(name)
	if err == nil && !known {
		m, err = ledgerModel(ctx, s, name)
	}
	if err != nil {
		return nil, err
	}
	if known {
		if _, err := s.SaveModel(ctx, m); err != nil {
			return nil, ledgerFault(err)
		}
	}
	if m.Experts != t.Experts || m.Layers < len(t.Layers) {
		return nil, usageError{fmt.Errorf("trace %s is of %d layers of %d experts, %s has %d of %d", t.Model, len(t.Layers), t.Experts, m.Name, m.Layers, m.Experts), "give -m the model the trace was taken from"}
	}
	for _, policy := range cachepolicy.Names() {
		h, ok := analysis.HitHistogram(r, policy)
		if !ok {
			continue
		}
		h.ModelID, h.Source = m.ID, "trace"
		if _, err := s.SaveHistogram(ctx, h); err != nil {
			return nil, ledgerFault(err)
		}
		policies = append(policies, policy)
	}
	return policies, nil
}

func fitLedger(ctx context.Context, a *app, f fitFlags) (err error) {
	if err := mustExist(a.dbPath); err != nil {
		return err
	}
	s, err := openStore(ctx, a.dbPath, results.Options{ReadOnly: f.noRecord})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	in, err := ledgerInput(ctx, s, f)
	if err != nil {
		return err
	}
	doc, fit, err := fitDocument(in)
	if err != nil {
		return withHint(fmt.Errorf("%s, policy %s: %w", in.source, in.policy, err), "make streamed runs at several cache sizes: `bmoe sweep -m MODEL --lever cache-mb`")
	}
	if f.all {
		doc.Groups = fitClasses(in)
	}
	if !f.noRecord {
		if doc.FitID, err = s.SaveFit(ctx, fitRecord(in, fit)); err != nil {
			return ledgerFault(err)
		}
	}
	return a.printFit(f, doc, in, fit)
}

// ledgerInput collects the points of the runs that the flags choose.
func ledgerInput(ctx context.Context, s *results.Store, f fitFlags) (fitInput, error) {
	in := fitInput{source: "all runs"}
	filter := results.RunFilter{}
	if f.model != "" {
		m, err := ledgerModel(ctx, s, f.model)
		if err != nil {
			return in, err
		}
		filter.Model, in.model, in.source = m.ID, m, "runs of "+m.Name
	}
	runs, err := s.Runs(ctx, filter)
	if err != nil {
		return in, ledgerFault(err)
	}
	in.runs = runs
	in.policy = f.policy
	if in.policy == "" {
		in.policy = commonPolicy(runs)
	}
	in.points, in.ids = analysis.RunHits(runs, in.policy)
	for i := range runs {
		switch id := runs[i].Run.Machine.ID; {
		case i == 0:
			in.machine = id
		case in.machine != id:
			in.machine = ""
		}
	}
	return in, nil
}

// commonPolicy is the policy with most runs that can be fitted.
func commonPolicy(runs []record.StoredRun) string {
	best, most := cachepolicy.A2D, 0
	for _, name := range cachepolicy.Names() {
		if p, _ := analysis.RunHits(runs, name); len(p) > most {
			best, most = name, len(p)
		}
	}
	return best
}

// printFit writes the plot, if asked for, and the document.
func (a *app) printFit(f fitFlags, doc *fitDoc, in fitInput, fit *analysis.HitFit) error {
	if f.plot != "" {
		fig, err := reports.HitsFigure("hits-fit", in.source+", "+in.policy, in.points, fit)
		if err != nil {
			return err
		}
		files, err := reports.FigureFiles(fig)
		if err != nil {
			return err
		}
		if err := writeFiles(f.plot, files); err != nil {
			return err
		}
	}
	if f.json {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(doc)
	}
	return doc.print(a.stdout)
}
