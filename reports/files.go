package reports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
)

// File is one file of a report.
type File struct {
	Name  string
	Bytes []byte
}

// Formats are what Render accepts.
var Formats = []string{"md", "html", "csv", "json"}

// Render renders a document in one format, as one file of that name: markdown
// and HTML hold everything, CSV the table of runs, JSON every table.
func Render(doc *Document, format string) (File, error) {
	var raw []byte
	var err error
	switch format {
	case "md":
		raw, err = doc.Markdown("")
	case "html":
		raw, err = doc.HTML()
	case "csv":
		raw, err = doc.runsCSV()
	case "json":
		raw, err = doc.JSON()
	default:
		return File{}, fmt.Errorf("format %q: want one of %v", format, Formats)
	}
	return File{"report." + format, raw}, err
}

// Files renders a report as the files of a folder: the page in every format,
// and its plots.
func Files(d Data, formats ...string) ([]File, error) {
	doc, err := New(d)
	if err != nil {
		return nil, err
	}
	if len(formats) == 0 {
		formats = Formats
	}
	out := make([]File, len(formats))
	work := workers() // pages first: they are the longest
	for i, f := range formats {
		work.Go(func() (err error) {
			out[i], err = Render(doc, f)
			return err
		})
	}
	var plots []File
	if slices.Contains(formats, "md") { // the HTML page holds its plots
		figures := doc.Figures()
		plots = make([]File, 2*len(figures))
		for i, f := range figures {
			work.Go(func() error {
				both, err := FigureFiles(f)
				copy(plots[2*i:], both)
				return err
			})
		}
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return append(out, plots...), nil
}

// FigureFiles draws a figure as SVG and PNG files.
func FigureFiles(f Figure) ([]File, error) {
	svg, err := f.SVG()
	if err != nil {
		return nil, err
	}
	png, err := f.PNG()
	return []File{{f.Name + ".svg", svg}, {f.Name + ".png", png}}, err
}

// runsCSV renders the tables of runs, one under the other: they have the same
// columns, which are named even where there is no run.
func (d *Document) runsCSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	names := []string{"of"}
	for _, c := range runColumns {
		names = append(names, c.Name)
	}
	lines := [][]string{names}
	for _, s := range d.Sections {
		if s.ID != runsID {
			continue
		}
		for _, block := range s.Blocks {
			if t, ok := block.(Table); ok {
				for _, row := range t.Rows {
					lines = append(lines, append([]string{t.Caption}, row...))
				}
			}
		}
	}
	err := w.WriteAll(lines)
	return b.Bytes(), err
}

// jsonSection is a section as data.
type jsonSection struct {
	ID     string      `json:"id"`
	Title  string      `json:"title"`
	Text   []string    `json:"text,omitempty"`
	Tables []jsonTable `json:"tables,omitempty"`
	Plots  []jsonPlot  `json:"plots,omitempty"`
}

type jsonTable struct {
	Caption string     `json:"caption"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

type jsonPlot struct {
	Name    string `json:"name"`
	Caption string `json:"caption"`
}

// JSON renders every text and table of a document.
func (d *Document) JSON() ([]byte, error) {
	out := struct {
		Schema   string        `json:"schema"`
		Title    string        `json:"title"`
		Sections []jsonSection `json:"sections"`
	}{Schema: "bmoe.report/1", Title: d.Title}
	for _, s := range d.Sections {
		js := jsonSection{ID: s.ID, Title: s.Title}
		for _, block := range s.Blocks {
			switch v := block.(type) {
			case Heading:
				js.Text = append(js.Text, string(v))
			case Text:
				js.Text = append(js.Text, string(v))
			case List:
				js.Text = append(js.Text, v...)
			case Table:
				t := jsonTable{Caption: v.Caption, Rows: v.Rows}
				for _, c := range v.Columns {
					t.Columns = append(t.Columns, c.Name)
				}
				js.Tables = append(js.Tables, t)
			case Figure:
				js.Plots = append(js.Plots, jsonPlot{v.Name, v.Caption})
			}
		}
		out.Sections = append(out.Sections, js)
	}
	raw, err := json.MarshalIndent(out, "", "  ")
	return append(raw, '\n'), err
}
