package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// grid is a table that fits the terminal: where its lines are too long, the
// widest columns of words wrap.
type grid struct {
	numbers []bool // by column: aligned right, and never wrapped
	rows    [][]string
}

// columnGap is what stands between two columns.
const columnGap = 2

// narrowest is the least that a column of words is left, if its words are no
// longer: they, and ids above all, stay whole.
const narrowest = 10

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// write prints the table in at most width columns, if its narrowest form has
// that few; 0 is no limit.
func (g *grid) write(w io.Writer, width int) error {
	widths := g.widths(width)
	var b strings.Builder
	for _, row := range g.rows {
		cells := make([][]string, len(row))
		height := 1
		for i, text := range row {
			cells[i] = []string{text}
			if utf8.RuneCountInString(text) > widths[i] {
				cells[i] = wrap(text, widths[i])
			}
			height = max(height, len(cells[i]))
		}
		for n := range height {
			line := ""
			for i := range cells {
				text := ""
				if n < len(cells[i]) {
					text = cells[i][n]
				}
				pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(text)))
				if g.number(i) {
					text = pad + text
				} else {
					text += pad
				}
				line += text + strings.Repeat(" ", columnGap)
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (g *grid) number(column int) bool { return column < len(g.numbers) && g.numbers[column] }

// widths are the columns' own widths, the widest of words made narrower step by
// step until all fit.
func (g *grid) widths(limit int) []int {
	var out, least []int
	for _, row := range g.rows {
		for i, text := range row {
			if i == len(out) {
				out, least = append(out, 0), append(least, narrowest)
			}
			out[i] = max(out[i], utf8.RuneCountInString(text))
			for _, word := range strings.Fields(text) {
				least[i] = max(least[i], utf8.RuneCountInString(word))
			}
		}
	}
	total := columnGap * (len(out) - 1)
	for _, n := range out {
		total += n
	}
	for ; limit > 0 && total > limit; total-- {
		widest := -1
		for i, n := range out {
			if !g.number(i) && n > least[i] && (widest < 0 || n > out[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		out[widest]--
	}
	return out
}

// terminalWidth is w's width if it is a terminal, else $COLUMNS, else 0: what
// goes into a pipe keeps one row a line.
func terminalWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
			return cols
		}
	}
	cols, _ := strconv.Atoi(os.Getenv("COLUMNS"))
	return max(0, cols)
}

// pageWidth is what was asked for, the terminal's width, $COLUMNS, or 80; never
// so little that a table loses its columns.
func pageWidth(w io.Writer, asked int) int {
	width := asked
	if width == 0 {
		width = terminalWidth(w)
	}
	if width == 0 {
		width = 80
	}
	return max(40, width)
}

// foldWords writes labelled text in lines of at most width columns; 0 is no
// limit.
func foldWords(w io.Writer, text string, width int) {
	lines := []string{text}
	if width > 0 {
		lines = wrap(text, width)
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}
