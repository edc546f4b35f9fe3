package planner

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText prints a plan for people: one line a decision with where it comes
// from, what the run will hold as a table that adds up, what it should cost, and
// the line that reproduces it. explain adds the full reason under each decision.
func WriteText(w io.Writer, p *Plan, explain bool) error {
	state := p.Regime
	if p.Declined {
		state += ", declined: no plan fits"
	}
	if _, err := fmt.Fprintf(w, "plan: %s\n\n", state); err != nil {
		return err
	}
	if err := writeDecisions(w, p.Decisions, explain); err != nil {
		return err
	}
	if len(p.Ledger) > 0 {
		if _, err := fmt.Fprintf(w, "\nheld by the run\n\n"); err != nil {
			return err
		}
		if err := writeLedgerTable(w, p.Ledger); err != nil {
			return err
		}
	}
	if err := writePrediction(w, &p.Prediction); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nreproduce: bmoe run %s\n", ShellLine(p.Reproduce))
	return err
}

// widestValue is how far a value may push the column that follows it.
const widestValue = 24

func writeDecisions(w io.Writer, list []Decision, explain bool) error {
	var knob, value, prov int
	for _, d := range list {
		knob, prov = max(knob, len(d.Knob)), max(prov, len(d.Provenance)+2)
		if len(d.Value) <= widestValue {
			value = max(value, len(d.Value))
		}
	}
	for _, d := range list {
		line := fmt.Sprintf("%-*s  %-*s  %-*s  %s\n", knob, d.Knob, value, d.Value, prov, "["+string(d.Provenance)+"]", d.Brief)
		if explain {
			line += fmt.Sprintf("    %s: %s\n", d.Topic, d.Reason)
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// writeLedgerTable puts both ceilings side by side. Each column adds up to its
// ceiling; what is held in turn with the cache stands beside, not in the sum.
func writeLedgerTable(w io.Writer, rows []LedgerRow) error {
	var names []string
	cells := map[string]*[3]string{}
	notes := map[string]string{}
	column := map[string]int{CeilingHoldable: 0, CeilingLockable: 1, CeilingInTurn: 2}
	sums := [2]int64{}
	for _, r := range rows {
		i, ok := column[r.Ceiling]
		if !ok {
			continue
		}
		if cells[r.Row] == nil {
			names = append(names, r.Row)
			cells[r.Row] = &[3]string{}
		}
		cells[r.Row][i] = mibText(r.Bytes)
		if i < 2 {
			sums[i] += r.Bytes
		}
		if r.Note != "" {
			notes[r.Row] = r.Note
		}
	}
	table := [][5]string{{"MiB", "held", "locked", "in turn", ""}}
	line := func(name string) {
		c := cells[name]
		table = append(table, [5]string{name, c[0], c[1], c[2], notes[name]})
	}
	for _, name := range names {
		if name != "free" {
			line(name)
		}
	}
	if cells["free"] != nil {
		line("free")
	}
	return writeTable(w, append(table, sumRow(rows, sums)))
}

// writeTable aligns names and notes left and numbers right, as a markdown
// table. The planner is pure down to what it imports, and table libraries reach
// for the system; this is all it needs of one.
func writeTable(w io.Writer, rows [][5]string) error {
	var width [5]int
	for _, r := range rows {
		for i, cell := range r {
			width[i] = max(width[i], len(cell))
		}
	}
	dash := func(i int) string { return strings.Repeat("-", width[i]+1) }
	for n, r := range rows {
		if _, err := fmt.Fprintf(w, "| %-*s | %*s | %*s | %*s | %-*s |\n", width[0], r[0], width[1], r[1], width[2], r[2], width[3], r[3], width[4], r[4]); err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "|:%s|%s:|%s:|%s:|:%s|\n", dash(0), dash(1), dash(2), dash(3), dash(4)); err != nil {
			return err
		}
	}
	return nil
}

// sumRow is the table's last line: each column's sum, which is its ceiling
// where the ceiling is known.
func sumRow(rows []LedgerRow, sums [2]int64) [5]string {
	out := [5]string{"sum", mibText(sums[0]), "", "", ""}
	if sums[1] != 0 {
		out[2] = mibText(sums[1])
	}
	for _, r := range rows {
		if r.Ceiling == CeilingLimit && r.Row == "may be held" {
			out[0], out[4] = "may be held", "after the margin"
		}
	}
	return out
}

func mibText(b int64) string { return fmt.Sprintf("%.1f", float64(b)/float64(mib)) }

func writePrediction(w io.Writer, p *Prediction) error {
	tab := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(tab, "\npredicted\n")
	line := func(name string, e Estimate, text func(float64) string) {
		switch {
		case e.Known:
			fmt.Fprintf(tab, "  %s\t%s\t(%s to %s)\t%s\n", name, text(e.Point), text(e.Lo), text(e.Hi), e.Basis)
		case e.Basis != "":
			fmt.Fprintf(tab, "  %s\tunknown\t\t%s\n", name, e.Basis)
		default:
			fmt.Fprintf(tab, "  %s\tunknown\n", name)
		}
	}
	line("decode, per token", p.DecodeSPerToken, seconds)
	line("prompt, tokens/s", p.PrefillTokensPerS, func(v float64) string { return fmt.Sprintf("%.4g", v) })
	line("hit rate", p.HitRate, func(v float64) string { return fmt.Sprintf("%.1f %%", v*100) })
	line("read per token", p.BytesPerToken, func(v float64) string { return size(int64(v)) })
	if p.Dominant != "" {
		fmt.Fprintf(tab, "  decided by\t%s\n", p.Dominant)
	}
	return tab.Flush()
}

// ShellLine quotes arguments for a POSIX shell.
func ShellLine(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		if a == "" || strings.ContainsAny(a, " \t\n\"'\\$`*?[]{}()<>|&;#~!") {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
