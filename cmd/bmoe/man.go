package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func init() { register(newManCommand) }

// newManCommand writes what cobra knows about the program into files, for a
// release and for docs/cli.md. Hidden: a user reads --help.
func newManCommand(a *app) *cobra.Command {
	var markdown string
	cmd := &cobra.Command{
		Use:     "man DIR",
		Short:   "write man pages and shell completions into a folder",
		Example: "  bmoe man share\n  bmoe man share --markdown docs/cli.md",
		Hidden:  true,
		Args:    exactArgs(1, "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			root.DisableAutoGenTag = true
			// The reader's home, not the writer's.
			root.PersistentFlags().Lookup("db").DefValue = "~/.local/share/bmoe/results.db"
			err := errors.Join(writeManPages(root, filepath.Join(args[0], "man", "man1")), writeCompletions(root, filepath.Join(args[0], "completions")))
			if err == nil && markdown != "" {
				err = writeCommandReference(root, markdown)
			}
			if err != nil {
				return withHint(err, "give a folder that can be written to")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&markdown, "markdown", "", "also write every command's help into this markdown file")
	return cmd
}

func writeManPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// A fixed date: equal programs have equal pages.
	epoch := time.Unix(0, 0).UTC()
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "bmoe", Manual: "bmoe manual", Date: &epoch}, dir)
}

func writeCompletions(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var bash, zsh, fish bytes.Buffer
	if err := root.GenBashCompletionV2(&bash, true); err != nil {
		return err
	}
	if err := root.GenZshCompletion(&zsh); err != nil {
		return err
	}
	if err := root.GenFishCompletion(&fish, true); err != nil {
		return err
	}
	for name, b := range map[string]*bytes.Buffer{"bmoe.bash": &bash, "_bmoe": &zsh, "bmoe.fish": &fish} {
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeCommandReference writes one section per command, its help as printed.
func writeCommandReference(root *cobra.Command, path string) error {
	var b strings.Builder
	b.WriteString("# Commands\n\nWritten by `make docs` from the program's own help. Every flag that is a knob can\nalso be given as an environment variable: `--cache-mb` is `BMOE_CACHE_MB`.\n\n## Exit codes\n\n")
	b.WriteString(exitTable)
	for _, c := range visible(root) {
		fmt.Fprintf(&b, "\n## %s\n\n```\n%s```\n", c.CommandPath(), helpText(c))
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

const exitTable = `| code | meaning |
|---|---|
| 0 | done |
| 1 | something went wrong while running |
| 2 | the command line is not understood |
| 3 | no plan fits (plan, and run --require-fit) |
| 4 | a verdict was required and is undecided or void |
| 5 | data conflict, or a database that is corrupt or not bmoe's |
| 130 | interrupted; everything stored is resumable |
`

// visible lists root and the commands under it, in the order of the help.
func visible(root *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			out = append(out, visible(c)...)
		}
	}
	return out
}

// helpText is what --help prints.
func helpText(c *cobra.Command) string {
	var b bytes.Buffer
	c.InitDefaultHelpFlag()
	c.SetOut(&b)
	_ = c.Help()
	c.SetOut(nil)
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}
