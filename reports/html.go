package reports

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"image": func(f *Figure) (template.URL, error) {
		svg, err := f.SVG()
		return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg)), err
	},
	"verdict": func(cell string) string {
		switch cell {
		case "better", "confirmed", "earned":
			return "win"
		case "undecided", "void", "refuted", "worse", "no verdict", "costs":
			return "notwin"
		}
		return ""
	},
}).Parse(pageSource))

// htmlBlock is a block as the template sees it; one field is set.
type htmlBlock struct {
	Heading string
	Text    string
	List    []string
	Table   *Table
	Figure  *Figure
}

type htmlSection struct {
	ID, Title string
	Blocks    []htmlBlock
}

// HTML renders a document as one page that needs nothing else: no network, no
// other file. Tables sort by a click on a column's name; without scripts the
// page is the same page, unsorted.
func (d *Document) HTML() ([]byte, error) {
	var sections []htmlSection
	for _, s := range d.Sections {
		hs := htmlSection{ID: s.ID, Title: s.Title}
		for _, block := range s.Blocks {
			switch v := block.(type) {
			case Heading:
				hs.Blocks = append(hs.Blocks, htmlBlock{Heading: string(v)})
			case Text:
				hs.Blocks = append(hs.Blocks, htmlBlock{Text: string(v)})
			case List:
				hs.Blocks = append(hs.Blocks, htmlBlock{List: v})
			case Table:
				v.Rows, v.Caption = v.shown()
				hs.Blocks = append(hs.Blocks, htmlBlock{Table: &v})
			case Figure:
				hs.Blocks = append(hs.Blocks, htmlBlock{Figure: &v})
			}
		}
		sections = append(sections, hs)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, struct {
		Title    string
		Sections []htmlSection
	}{d.Title, sections}); err != nil {
		return nil, fmt.Errorf("html page: %w", err)
	}
	return b.Bytes(), nil
}
