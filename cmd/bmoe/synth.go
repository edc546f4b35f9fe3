package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/bmoe/bmoe/engine/synth"
)

func init() { register(newSynthCmd) }

type synthFlags struct {
	spec  synth.Spec
	from  string // llama2.c weights to start from
	noise float64
	out   string
	force bool
	json  bool
}

func newSynthCmd(a *app) *cobra.Command {
	f := &synthFlags{spec: synth.Default()}
	cmd := &cobra.Command{
		Use:   "synth -o FILE [flags]",
		Short: "write a synthetic Mixture-of-Experts model",
		Long: `Writes a random Mixture-of-Experts model in GGUF, of any size, that stock
llama.cpp loads. Its text is noise; its layout, its graph and the way its router
spreads over the experts are those of a real model. The same flags and seed give
the same bytes.

With --from-llama2c it makes one of a small dense llama2.c checkpoint that can
still write: every expert is the dense feed-forward layer with its units in
another order and --noise. --embd and --ff then only widen, with zeros.`,
		Example: `  bmoe synth -o m.gguf
  bmoe synth -o big.gguf --layers 24 --experts 128 --embd 1024 --ff 512 --type q4_0 --skew 0.8
  bmoe synth -o split.gguf --shards 4
  bmoe synth -o story.gguf --from-llama2c stories260K.bin tok512.bin --experts 64 --noise 0.05`,
		Args: func(c *cobra.Command, args []string) error {
			if f.from == "" {
				return exactArgs(0, "no arguments")(c, args)
			}
			return exactArgs(1, "the tokenizer after --from-llama2c WEIGHTS")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			write, err := f.writer(c.Flags(), args)
			if err != nil {
				return usageError{err, "see `bmoe synth --help`"}
			}
			return runSynth(c.Context(), a, f, write)
		},
	}
	bindSynth(cmd, f)
	return cmd
}

func bindSynth(cmd *cobra.Command, f *synthFlags) {
	fs, s := cmd.Flags(), &f.spec
	fs.SortFlags = false
	fs.StringVarP(&f.out, "output", "o", "", "file to write; with --shards the stem of the files' names")
	fs.StringVar(&s.Arch, "arch", s.Arch, "architecture: "+strings.Join(synth.ArchNames(), ", "))
	fs.IntVar(&s.Layers, "layers", s.Layers, "layers")
	fs.IntVar(&s.Experts, "experts", s.Experts, "experts per layer")
	fs.IntVar(&s.Used, "experts-used", s.Used, "experts each token uses")
	fs.IntVar(&s.Embd, "embd", s.Embd, "width of the residual stream")
	fs.IntVar(&s.FF, "ff", s.FF, "width of one expert")
	fs.StringVar(&s.Type, "type", s.Type, "type of the weights: "+strings.Join(synth.TypeNames(), ", "))
	fs.Uint64Var(&s.Seed, "seed", s.Seed, "seed of all randomness")
	fs.Float64Var(&s.Skew, "skew", s.Skew, "popularity of the r-th expert of a layer falls as r^-skew; 0: all alike")
	fs.IntVar(&s.Shards, "shards", s.Shards, "files to split the model into")
	fs.IntVar(&s.Vocab, "vocab", s.Vocab, "tokens")
	fs.IntVar(&s.Context, "context", s.Context, "context length, in tokens")
	fs.BoolVar(&s.Mixed, "mixed", false, "expert types that differ by layer and projection")
	fs.BoolVar(&s.FusedGateUp, "fused-gate-up", false, "gate and up of an expert in one tensor (deepseek2)")
	fs.BoolVar(&s.TiedHead, "tied-head", false, "no head of its own: the embedding table is the head")
	fs.BoolVar(&s.Scaled, "scaled", false, "a scale per expert beside each expert tensor")
	fs.IntVar(&s.DenseLead, "dense-lead", 0, "leading layers without experts (deepseek2)")
	fs.BoolVar(&s.MTP, "mtp", false, "a trailing block for multi-token prediction (deepseek2)")
	fs.IntVar(&s.Groups, "expert-groups", 0, "groups the experts of a layer fall into; 0: ungrouped")
	fs.IntVar(&s.GroupsUsed, "expert-groups-used", 0, "groups a token's experts may come from")
	fs.StringVar(&f.from, "from-llama2c", "", "make the model of these llama2.c `WEIGHTS`; the tokenizer follows as an argument")
	fs.Float64Var(&f.noise, "noise", 0, "with --from-llama2c: noise on every expert weight, relative to it")
	fs.BoolVar(&f.force, "force", false, "replace files that exist")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
}

// synthDoc is the document of synth --json.
type synthDoc struct {
	Schema string `json:"schema"`
	synth.Summary
}

// modelWriter writes the model that the flags describe.
type modelWriter func(ctx context.Context, o synth.Options) (synth.Summary, error)

// writer checks the flags and says what to write.
func (f *synthFlags) writer(fs *pflag.FlagSet, args []string) (modelWriter, error) {
	if f.out == "" {
		return nil, errors.New("synth needs a file to write: add -o FILE")
	}
	if f.from == "" {
		if fs.Changed("noise") {
			return nil, errors.New("--noise: only with --from-llama2c")
		}
		return func(ctx context.Context, o synth.Options) (synth.Summary, error) {
			return synth.Write(ctx, f.out, f.spec, o)
		}, f.spec.Check()
	}
	for _, name := range []string{"arch", "layers", "skew", "vocab", "context", "mixed", "fused-gate-up", "tied-head", "scaled", "dense-lead", "mtp", "expert-groups", "expert-groups-used"} {
		if fs.Changed(name) {
			return nil, fmt.Errorf("--%s: comes from the weights with --from-llama2c", name)
		}
	}
	u := synth.Upcycle{
		Weights: f.from, Tokenizer: args[0], Experts: f.spec.Experts, Used: f.spec.Used, Type: "q8_0",
		Noise: f.noise, Seed: f.spec.Seed, Shards: f.spec.Shards,
	}
	// The widths and the type have other defaults here: those of the weights,
	// and one that keeps a small model's text.
	if fs.Changed("type") {
		u.Type = f.spec.Type
	}
	if fs.Changed("embd") {
		u.Embd = f.spec.Embd
	}
	if fs.Changed("ff") {
		u.FF = f.spec.FF
	}
	return func(ctx context.Context, o synth.Options) (synth.Summary, error) {
		return synth.WriteUpcycled(ctx, f.out, u, o)
	}, u.Check()
}

func runSynth(ctx context.Context, a *app, f *synthFlags, write modelWriter) error {
	progress, finish := byteProgress(a.stderr, "writing")
	sum, err := write(ctx, synth.Options{Force: f.force, Progress: progress})
	finish()
	if err != nil {
		return interrupted(ctx, withHint(err, f.remedy(err)))
	}
	if f.json {
		return json.NewEncoder(a.stdout).Encode(synthDoc{"bmoe.synth/1", sum})
	}
	for _, name := range sum.Files {
		fmt.Fprintln(a.stdout, name)
	}
	fmt.Fprintf(a.stderr, "%s in %s, of which %s routed experts; %s/s\n", humanize.IBytes(uint64(sum.Bytes)),
		time.Duration(sum.Seconds*float64(time.Second)).Round(10*time.Millisecond), humanize.IBytes(uint64(sum.RoutedBytes)), humanize.IBytes(uint64(sum.BytesPerS)))
	return nil
}

// remedy is what to type after err.
func (f *synthFlags) remedy(err error) string {
	switch {
	case errors.Is(err, synth.ErrExists):
		return "give -o another name, or add --force"
	case f.from != "":
		return "give --from-llama2c llama2.c's weights and then its tokenizer, -o a file in a folder that can be written to"
	}
	return "give -o a file in a folder that can be written to; see `bmoe synth --help`"
}

// byteProgress is a progress bar with rate and time left where w is a terminal,
// and nothing elsewhere. finish clears it.
func byteProgress(w io.Writer, what string) (progress func(done, total int64), finish func()) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, func() {}
	}
	bar := progressbar.NewOptions64(-1, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	return func(done, total int64) {
		if bar.GetMax64() != total {
			bar.ChangeMax64(total)
		}
		// The bar only fails when its writer does, and then there is no one to tell.
		_ = bar.Set64(done)
	}, func() { _ = bar.Clear() }
}
