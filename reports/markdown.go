package reports

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Markdown renders a document. Figures are linked as SVG files in dir, relative
// to where the page will stand; "" is beside it.
func (d *Document) Markdown(dir string) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", escape(d.Title))
	for i := range d.Sections {
		s := &d.Sections[i]
		fmt.Fprintf(&b, "\n## %s\n", escape(s.Title))
		text, err := s.Markdown(dir)
		if err != nil {
			return nil, err
		}
		b.WriteString("\n")
		b.Write(text)
	}
	return []byte(b.String()), nil
}

// Markdown renders a section without its title.
func (s *Section) Markdown(dir string) ([]byte, error) {
	var b strings.Builder
	for i, block := range s.Blocks {
		if i > 0 {
			b.WriteString("\n")
		}
		switch v := block.(type) {
		case Heading:
			b.WriteString("### " + escape(string(v)) + "\n")
		case Text:
			b.WriteString(escape(string(v)) + "\n")
		case List:
			for _, item := range v {
				b.WriteString("- " + escape(item) + "\n")
			}
		case Table:
			if err := v.markdown(&b); err != nil {
				return nil, fmt.Errorf("table in section %q: %w", s.Title, err)
			}
		case Figure:
			fmt.Fprintf(&b, "![%s](%s%s.svg)\n\n%s\n", escape(firstSentence(v.Caption)), dir, v.Name, escape(v.Caption))
		}
	}
	return []byte(b.String()), nil
}

// firstSentence is short enough to stand in place of an image.
func firstSentence(text string) string {
	for i := range text {
		if (text[i] == ':' || text[i] == '.') && i+1 < len(text) && text[i+1] == ' ' {
			return text[:i]
		}
	}
	return strings.TrimSuffix(text, ".")
}

func (t *Table) markdown(b *strings.Builder) error {
	align := make(tw.Alignment, len(t.Columns))
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i], align[i] = escape(c.Name), tw.AlignLeft
		if c.Number {
			align[i] = tw.AlignRight
		}
	}
	w := tablewriter.NewTable(b,
		tablewriter.WithRenderer(renderer.NewMarkdown()),
		tablewriter.WithHeaderAutoFormat(tw.Off), // else names become upper case
		tablewriter.WithAlignment(align),
	)
	w.Header(head)
	rows, caption := t.shown()
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = escape(c)
		}
		if err := w.Append(cells); err != nil {
			return err
		}
	}
	if err := w.Render(); err != nil {
		return err
	}
	if caption != "" {
		b.WriteString("\n" + escape(caption) + "\n")
	}
	return nil
}

// escaper keeps plain text plain where markdown would read it otherwise. A
// bracket alone is text; only one that could start a link target is not.
var escaper = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", "&", "&amp;", "*", `\*`, "`", "\\`", "](", `\](`, "]:", `\]:`, "\n", " ", "#", `\#`,
)

// edge finds underscores that are not inside a word: those could be emphasis.
var edge = regexp.MustCompile(`(^|\W)_|_(\W|$)`)

func escape(text string) string {
	text = escaper.Replace(text)
	if !edge.MatchString(text) {
		return text
	}
	return strings.ReplaceAll(text, "_", `\_`)
}
