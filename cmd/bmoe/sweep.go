package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/planner/config"
)

func init() { register(newSweepCmd) }

// latest is what --resume stands for without an id.
const latest = "latest"

// sweepFlags are what `bmoe sweep` takes beside the knobs.
type sweepFlags struct {
	lever      string
	values     string
	baseline   string
	aa         bool
	earns      bool
	pairs      int
	exactPairs bool
	design     string
	orderSeed  int64
	margin     string
	metric     string
	looks      int
	warmup     int
	entryWait  time.Duration
	runTimeout time.Duration
	runMemory  int
	maxTime    time.Duration
	cacheState string
	predict    string
	auto       bool
	overLedger bool
	dryRun     bool
	resume     string
	asJSON     bool
	require    bool
	probe      probeFlags
}

func newSweepCmd(a *app) *cobra.Command {
	f := &sweepFlags{}
	cmd := &cobra.Command{
		Use:   "sweep -m MODEL --lever LEVER",
		Short: "compare a knob's values in interleaved runs and say what they show",
		Long: `sweep asks one question about one knob. It registers the question, the arms, the
order and what would refute it; runs every arm in fresh processes, interleaved
so that a warming machine does not favour one; and compares them in pairs: the
Hodges-Lehmann estimate of the ratio with its exact signed-rank interval, at the
level that so many pairs attain. The finding is one word: better, worse,
equivalent, small (direction known, size not), undecided, or void when the runs
do not answer the question.

The model, the prompt and all other knobs are those of ` + "`bmoe run`" + `. Without a
prompt a built-in one is read, and 64 seeded random tokens are fed after it, so
that routing does not settle into a loop. Ctrl-C keeps what was run.`,
		Example: `  bmoe sweep -m model.gguf --lever io-threads
  bmoe sweep -m model.gguf --lever cache-mb --values 256-2048*2 --auto
  bmoe sweep -m model.gguf --lever overlap --predict "better by 5%..15%"
  bmoe sweep -m model.gguf --aa
  bmoe sweep -m model.gguf --auto --plan-vs-baseline --dry-run
  bmoe sweep --resume`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && f.resume != "" {
				return nil
			}
			return usageError{fmt.Errorf("bmoe sweep does not know %q", args[0]), "the lever is --lever NAME, its values --values LIST; see `bmoe sweep --help`"}
		},
	}
	k := bindKnobs(cmd, "predict")
	k.bindTokens(cmd)
	f.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			f.resume = args[0]
		}
		s := &sweeper{app: a, flags: f, knobs: k, changed: cmd.Flags().Changed}
		return s.run(cmd.Context())
	}
	return cmd
}

func (f *sweepFlags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.lever, "lever", "", "knob to vary, as NAME or NAME=VALUES")
	fs.StringVar(&f.values, "values", "", "its values: 1,2,4 or 1-8*2 or 1-8+1 (default: the lever's own list)")
	fs.StringVar(&f.baseline, "baseline", "", "value the others are compared with (default: the first)")
	fs.BoolVar(&f.aa, "aa", false, "compare a configuration with itself: what differs is this machine's noise")
	fs.BoolVar(&f.earns, "plan-vs-baseline", false, "compare the plan with llama.cpp's defaults and with each decision taken back")
	fs.IntVar(&f.pairs, "pairs", 8, "pairs of each comparison (6 quick, 10 firm; raised when they cannot decide)")
	fs.BoolVar(&f.exactPairs, "exact-pairs", false, "keep --pairs even when so few cannot decide")
	fs.StringVar(&f.design, "design", "", "order of the runs: random, abba or blocks (default: random for two arms, blocks for more)")
	fs.Int64Var(&f.orderSeed, "order-seed", 1, "seed of the order (--seed, the sampling seed, sets it too)")
	fs.StringVar(&f.margin, "margin", "2%", "differences below this do not matter")
	fs.StringVar(&f.metric, "metric", experiments.MetricDecode, "what is compared: decode, prefill, ttft or load")
	fs.IntVar(&f.looks, "looks", 1, "1, or 2 to look after 6 of 10 pairs and stop if that is clear")
	fs.IntVar(&f.warmup, "warmup", 1, "runs of each arm before the first pair, kept but not judged")
	fs.DurationVar(&f.entryWait, "entry-wait", 10*time.Second, "longest wait for a quiet machine before a run")
	fs.DurationVar(&f.runTimeout, "run-timeout", 15*time.Minute, "longest a run may take")
	fs.IntVar(&f.runMemory, "run-memory-mb", 0, "limit each run's memory to this many MiB, by a memory group (0: no limit of its own)")
	fs.DurationVar(&f.maxTime, "max-time", 0, "stop before the block that would go beyond this (0: no bound)")
	fs.StringVar(&f.cacheState, "cache-state", experiments.CacheWarm, "page cache before a run: warm (as it is) or cold (emptied, and verified)")
	fs.StringVar(&f.predict, "predict", "", `register the effect you expect: "better by 5%..15%", "worse by 5%", "equivalent"`)
	fs.BoolVar(&f.auto, "auto", false, "plan the knobs that are not given, and register the plan's prediction of each arm")
	fs.BoolVar(&f.overLedger, "over-ledger", false, "run values that ask for more memory than can be held")
	fs.BoolVar(&f.dryRun, "dry-run", false, "print the schedule, its cost and what it can find; run and store nothing")
	fs.StringVar(&f.resume, "resume", "", "go on with an experiment that was stopped: its id, or nothing for the latest")
	fs.Lookup("resume").NoOptDefVal = latest
	fs.BoolVar(&f.asJSON, "json", false, "print one JSON document")
	fs.BoolVar(&f.require, "require", false, "exit with code 4 when a verdict is undecided or void")
	f.probe.bind(cmd)
}

// bindTokens gives the number of tokens its other names: here --predict is what
// the caller expects of the effect.
func (k *knobs) bindTokens(cmd *cobra.Command) {
	p, _ := config.Lookup("predict")
	cmd.Flags().VarP(&knobValue{k: k, p: *p}, p.Alias, p.Short, p.Help)
}

// kind of the question, from flags of which exactly one may be given.
func (f *sweepFlags) kind() (string, error) {
	var kinds []string
	if f.lever != "" {
		kinds = append(kinds, experiments.KindSweep)
	}
	if f.aa {
		kinds = append(kinds, experiments.KindAA)
	}
	if f.earns {
		kinds = append(kinds, experiments.KindEarns)
	}
	switch len(kinds) {
	case 0:
		return "", usageError{errors.New("no question asked"), "name a knob with --lever NAME, or give --aa or --plan-vs-baseline"}
	case 1:
		return kinds[0], nil
	}
	return "", usageError{errors.New("--lever, --aa and --plan-vs-baseline ask different questions"), "give one of them; one experiment answers one question"}
}
