package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bmoe/bmoe/analysis"
)

// app is what every command is given: its streams and the flags all share.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	dbPath string // --db
}

// builders collects the commands; each file registers its own.
var builders []func(*app) *cobra.Command

func register(build func(*app) *cobra.Command) { builders = append(builders, build) }

// Run is the program: it parses args, runs the command and returns the exit
// code (see exit.go). Tests call it in process.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &outlet{Writer: stdout}
	a := &app{stdin: stdin, stdout: out, stderr: stderr}
	root := newRoot(a)
	root.SetArgs(expandDashes(args))
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("standard output: %w", out.err)
	}
	return report(ctx, err, stderr)
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "bmoe",
		Short: "run Mixture-of-Experts models larger than memory, and know why it is fast",
		Long: `bmoe streams the routed experts of a Mixture-of-Experts model from flash on top
of stock llama.cpp. It plans each setting from measured facts, writes its
prediction down before the run, measures, and stores both.`,
		Example: `  bmoe run -m model.gguf -p "Once upon a time" -n 64 --auto
  bmoe sweep -m model.gguf --lever io-threads
  bmoe report --out report`,
		Version:       moduleVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{flagFault(err), "see `" + c.CommandPath() + " --help`"}
	})
	root.PersistentFlags().StringVar(&a.dbPath, "db", defaultDB(), "results database")
	for _, build := range builders {
		root.AddCommand(build(a))
	}
	cmds := root.Commands()
	slices.SortFunc(cmds, func(x, y *cobra.Command) int { return slices.Compare([]string{x.Name()}, []string{y.Name()}) })
	return root
}

// flagFault says once which flag and which value it was, and nothing of how
// the value was parsed.
func flagFault(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	cause := bad.Unwrap()
	if strings.HasPrefix(cause.Error(), "--") {
		return cause
	}
	what := "--" + bad.GetFlag().Name + " " + strconv.Quote(bad.GetValue())
	if errors.Is(cause, strconv.ErrRange) {
		return fmt.Errorf("%s: the number is too large", what)
	}
	if kind, ok := wanted[bad.GetFlag().Value.Type()]; ok {
		return fmt.Errorf("%s: want %s", what, kind)
	}
	return err
}

// wanted says what to write for a flag of a type.
var wanted = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0 up",
	"float64": "a number", "duration": "a time such as 30s or 2m",
}

// defaultDB is ${XDG_DATA_HOME:-~/.local/share}/bmoe/results.db.
func defaultDB() string {
	if p := os.Getenv("BMOE_DB"); p != "" {
		return p
	}
	base := os.Getenv("XDG_DATA_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "results.db"
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "bmoe", "results.db")
}

// exactArgs is cobra's check with a message that says what to type.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("%s takes %s, got %s", c.CommandPath(), what, analysis.Count(len(args), "argument")), "see `" + c.CommandPath() + " --help`"}
		}
		return nil
	}
}
