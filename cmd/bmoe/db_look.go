package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/results"
)

func newDBInfo(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "info",
		Short:   "what the database holds and how large it is",
		Example: "  bmoe db info --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return withStore(c.Context(), a.dbPath, readOnly, func(s *results.Store) error {
				info, err := s.Info(c.Context())
				if err != nil {
					return ledgerFault(err)
				}
				if asJSON {
					return printJSON(a.stdout, info)
				}
				return printInfo(a.stdout, info, terminalWidth(a.stdout))
			})
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// printInfo leaves the path whole, however long: it is there to be copied.
func printInfo(w io.Writer, info results.Info, width int) error {
	text := fmt.Sprintf("schema %d, %s", info.Schema, humanize.IBytes(uint64(info.Bytes)))
	if info.LogBytes > 0 {
		text += fmt.Sprintf(" and %s of write-ahead log", humanize.IBytes(uint64(info.LogBytes)))
	}
	if info.FreeBytes > 0 {
		text += fmt.Sprintf(", %s of it unused (`bmoe db vacuum`)", humanize.IBytes(uint64(info.FreeBytes)))
	}
	fmt.Fprintln(w, info.Path)
	foldWords(w, text, width)
	if info.Samples > 0 {
		foldWords(w, fmt.Sprintf("%s token samples, %.1f bytes of file each", humanize.Comma(info.Samples), info.BytesPerSample), width)
	}
	if info.First != "" {
		foldWords(w, fmt.Sprintf("runs from %s to %s", info.First, info.Last), width)
	}
	fmt.Fprintln(w)
	t := grid{numbers: []bool{false, true, true}}
	t.add("entity", "rows", "content")
	for _, line := range info.Tables {
		if line.Rows > 0 {
			t.add(line.Name, strconv.FormatInt(line.Rows, 10), humanize.IBytes(uint64(line.Bytes)))
		}
	}
	if err := t.write(w, width); err != nil {
		return err
	}
	fmt.Fprintln(w)
	foldWords(w, "digest "+info.Digest, width)
	return nil
}

func newDBList(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "the models and machines it knows",
		Example: "  bmoe db list",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return withStore(c.Context(), a.dbPath, readOnly, func(s *results.Store) error {
				return listDB(c.Context(), a, s, asJSON)
			})
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func listDB(ctx context.Context, a *app, s *results.Store, asJSON bool) error {
	models, err := s.Models(ctx)
	if err != nil {
		return ledgerFault(err)
	}
	machines, err := s.Machines(ctx)
	if err != nil {
		return ledgerFault(err)
	}
	if asJSON {
		return printJSON(a.stdout, map[string]any{"schema": "bmoe.db-list/1", "models": models, "machines": machines})
	}
	width := terminalWidth(a.stdout)
	known := grid{numbers: []bool{4: true}}
	known.add("model", "name", "arch", "quant", "runs")
	for _, m := range models {
		known.add(fmt.Sprintf("%.12s", m.ID), plain(strings.Join(m.Names, ", ")), plain(m.Arch), plain(m.Quant), strconv.Itoa(m.Runs))
	}
	if err := known.write(a.stdout, width); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	on := grid{numbers: []bool{3: true}}
	on.add("machine", "processor", "system", "runs")
	for _, m := range machines {
		on.add(fmt.Sprintf("%.12s", m.ID), plain(m.CPU), plain(m.OS)+" "+plain(m.Arch), strconv.Itoa(m.Runs))
	}
	return on.write(a.stdout, width)
}
