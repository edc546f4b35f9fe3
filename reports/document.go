package reports

import (
	"fmt"
	"strings"
)

// Document is a page before it has a format.
type Document struct {
	Title    string
	Sections []Section
}

// Section is a part of a page. ID is its anchor, and the name of the generated
// region that may hold it.
type Section struct {
	ID     string
	Title  string
	Blocks []Block
}

// Block is a heading, a paragraph, a list, a table or a figure.
type Block interface{ block() }

// Heading is a title within a section.
type Heading string

// Text is a paragraph of plain text.
type Text string

// List is a bulleted list of plain texts.
type List []string

// Table is a table with a caption that says whose figures these are.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]string
}

// pageRows bounds a table's rows on a page that is read; JSON and CSV hold all.
const pageRows = 400

// shown returns the rows that a page shows, the last of them, and the caption
// that says so.
func (t *Table) shown() (rows [][]string, caption string) {
	more := len(t.Rows) - pageRows
	if more <= 0 {
		return t.Rows, t.Caption
	}
	return t.Rows[more:], strings.TrimSpace(fmt.Sprintf("%s The last %d of %d rows are shown; `--format json` has all.", t.Caption, pageRows, len(t.Rows)))
}

// Column is a table's column. Numbers are aligned right.
type Column struct {
	Name   string
	Number bool
}

// Figure is a plot. Name is its file's name without the extension.
type Figure struct {
	Name    string
	Caption string // what it shows, with its n: also the text for those who do not see it

	drawing *drawing
}

func (Heading) block() {}
func (Text) block()    {}
func (List) block()    {}
func (Table) block()   {}
func (Figure) block()  {}

// columns makes columns of names; those that start with # hold numbers.
func columns(names ...string) []Column {
	out := make([]Column, len(names))
	for i, n := range names {
		out[i] = Column{Name: n}
		if n[0] == '#' {
			out[i] = Column{Name: n[1:], Number: true}
		}
	}
	return out
}

// Figures returns every figure of a document, in order.
func (d *Document) Figures() []Figure {
	var out []Figure
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if f, ok := b.(Figure); ok {
				out = append(out, f)
			}
		}
	}
	return out
}
