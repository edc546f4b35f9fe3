package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/engine/trace"
	"github.com/bmoe/bmoe/experiments"
)

func init() { register(newTraceCommand) }

func newTraceCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "work with routing traces",
		Long: `A routing trace is the CSV that ` + "`bmoe run --route-trace FILE`" + ` writes: which
experts each token picked, layer by layer.`,
		Example: `  bmoe run -m model.gguf -p "Once upon a time" --moe-stream --route-trace routes.csv
  bmoe trace replay routes.csv --policy a2d,lru,belady`,
		RunE: func(c *cobra.Command, args []string) error {
			return usageError{fmt.Errorf("trace needs a command, got %q", strings.Join(args, " ")), "type `bmoe trace replay FILE`"}
		},
	}
	cmd.AddCommand(newTraceReplay(a))
	return cmd
}

type replayFlags struct {
	policies []string
	budgets  string
	json     bool
}

func newTraceReplay(a *app) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "hit rates of cache policies at many budgets, from one trace",
		Long: `Replays a trace through cache policies under one byte budget over all slice
sizes. belady is the bound of a policy that knows the future; stack-distance is
LRU at all budgets from one pass.`,
		Example: `  bmoe trace replay route.csv --policy lru,a2d,belady --budget-mb 500,1000-8000*2
  bmoe trace replay route.csv --policy stack-distance --json`,
		Args: exactArgs(1, "one trace file"),
		RunE: func(c *cobra.Command, args []string) error { return traceReplay(c.Context(), a.stdout, args[0], f) },
	}
	cmd.Flags().StringSliceVar(&f.policies, "policy", []string{"lru", "a2d", analysis.Belady}, "policies: "+strings.Join(analysis.ReplayPolicies(), ", "))
	cmd.Flags().StringVar(&f.budgets, "budget-mb", "", "budgets in MiB: a list of N, FIRST-LAST+STEP or FIRST-LAST*FACTOR (default: ten tenths of all experts)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// replayDoc is the document of trace replay --json.
type replayDoc struct {
	Schema string      `json:"schema"`
	Trace  traceFacts  `json:"trace"`
	Rows   []replayRow `json:"rows"`
}

type traceFacts struct {
	Model       string `json:"model"`
	Arch        string `json:"arch"`
	Layers      int    `json:"layers"`
	Experts     int    `json:"experts"`
	Picks       int    `json:"picks"`
	Lookups     int64  `json:"lookups"`
	RoutedBytes int64  `json:"routed_bytes"`
	TokenCycle  int64  `json:"token_cycle_bytes"`
}

type replayRow struct {
	Policy           string  `json:"policy"`
	BudgetMB         float64 `json:"budget_mb"`
	HitPctCum        float64 `json:"hit_pct_cum"`
	HitPctDecode     float64 `json:"hit_pct_decode"`
	ByteHitPctDecode float64 `json:"byte_hit_pct_decode"`
	ReadMiB          float64 `json:"read_mib"`
}

const mib = 1 << 20

func traceReplay(ctx context.Context, stdout io.Writer, path string, f replayFlags) error {
	t, err := readTrace(ctx, path)
	if err != nil {
		return err
	}
	if len(f.policies) == 0 {
		return usageError{errors.New("--policy: no policy is named"), "give one or more of " + strings.Join(analysis.ReplayPolicies(), ", ")}
	}
	r, _ := analysis.NewRouting(t)
	budgets, err := replayBudgets(f.budgets, r)
	if err != nil {
		return err
	}
	doc := replayDoc{Schema: "bmoe.trace.replay/1", Trace: traceFacts{
		Model: t.Model, Arch: t.Arch, Layers: len(t.Layers), Experts: t.Experts, Picks: len(t.Picks),
		RoutedBytes: r.RoutedBytes(), TokenCycle: r.TokenCycle(),
	}}
	for _, policy := range f.policies {
		rows, err := replayCurve(ctx, r, policy, budgets)
		if err != nil {
			return err
		}
		for _, res := range rows {
			doc.Trace.Lookups = res.All.Lookups
			doc.Rows = append(doc.Rows, replayRow{
				Policy: policy, BudgetMB: float64(res.BudgetBytes) / mib,
				HitPctCum: 100 * res.All.HitRate(), HitPctDecode: 100 * res.Decode.HitRate(),
				ByteHitPctDecode: 100 * res.Decode.ByteHitRate(), ReadMiB: float64(res.All.ReadBytes()) / mib,
			})
		}
	}
	if f.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(doc)
	}
	return printReplay(stdout, doc)
}

func readTrace(ctx context.Context, path string) (*trace.Trace, error) {
	file, err := openInput(path)
	if err != nil {
		return nil, usageError{fmt.Errorf("trace: %w", err), "`bmoe run --route-trace FILE` writes one"}
	}
	defer file.Close()
	t, err := await(ctx, func() (*trace.Trace, error) { return trace.Read(file) })
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil:
		return nil, interrupted(ctx, err)
	case errors.Is(err, bufio.ErrTooLong):
		err = errors.New("a line too long for a routing trace")
	}
	return nil, codedError{fmt.Errorf("trace %s: %w", path, err), exitData, "`bmoe run --route-trace FILE` writes a trace this command reads"}
}

// replayCurve replays one policy at all budgets; stack-distance takes one pass
// for them all.
func replayCurve(ctx context.Context, r *analysis.Routing, policy string, budgets []int64) ([]analysis.ReplayResult, error) {
	var out []analysis.ReplayResult
	if policy == analysis.StackDistance {
		c := analysis.NewLRUCurve(r)
		for _, b := range budgets {
			out = append(out, c.At(b))
		}
		return out, nil
	}
	for _, b := range budgets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		res, err := analysis.Replay(r, policy, b)
		if err != nil {
			return nil, usageError{fmt.Errorf("--policy: %w", err), "see `bmoe trace replay --help`"}
		}
		out = append(out, res)
	}
	return out, nil
}

// replayBudgets parses --budget-mb into bytes.
func replayBudgets(text string, r *analysis.Routing) ([]int64, error) {
	var out []int64
	if text == "" {
		for tenth := range int64(10) {
			out = append(out, r.RoutedBytes()*(tenth+1)/10)
		}
		return out, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		list, err := megabytes(strings.TrimSpace(part))
		if err != nil || len(out)+len(list) > maxBudgets {
			if err == nil {
				err = fmt.Errorf("more than %d values", maxBudgets)
			}
			return nil, usageError{fmt.Errorf("--budget-mb %q: %w", part, err), "for example --budget-mb 500,1000-4000+500"}
		}
		out = append(out, list...)
	}
	return out, nil
}

// maxBudgets bounds what a slip of the range syntax can ask for.
const maxBudgets = 4096

// megabytes reads one number of MiB or one range of them, into bytes.
func megabytes(text string) ([]int64, error) {
	const most = math.MaxInt64 / mib / 2
	whole, ranged, err := experiments.Range(text, maxBudgets)
	if err != nil {
		return nil, err
	}
	if !ranged {
		mb, err := strconv.ParseFloat(text, 64)
		if errors.Is(err, strconv.ErrSyntax) || math.IsNaN(mb) || mb < 0 {
			return nil, errors.New("want a number from 0 up, or a range of whole numbers")
		}
		if mb > most {
			return nil, errors.New("more than any memory")
		}
		return []int64{int64(mb * mib)}, nil
	}
	if whole[len(whole)-1] > most {
		return nil, errors.New("more than any memory")
	}
	for i := range whole {
		whole[i] *= mib
	}
	return whole, nil
}

func printReplay(w io.Writer, doc replayDoc) error {
	fmt.Fprintf(w, "%s: %d layers of %d experts, %.0f MiB in all, token cycle %.0f MiB, %d lookups\n\n", doc.Trace.Model, doc.Trace.Layers, doc.Trace.Experts,
		float64(doc.Trace.RoutedBytes)/mib, float64(doc.Trace.TokenCycle)/mib, doc.Trace.Lookups)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tbudget MiB\thit % all\thit % decode\tbyte hit % decode\tread MiB\t")
	for _, row := range doc.Rows {
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.1f\t\n", row.Policy, row.BudgetMB, row.HitPctCum, row.HitPctDecode, row.ByteHitPctDecode, row.ReadMiB)
	}
	return t.Flush()
}
