package reports

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./reports -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func files(t *testing.T, d Data) map[string][]byte {
	t.Helper()
	list, err := Files(d)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, f := range list {
		out[f.Name] = f.Bytes
	}
	return out
}

var sampleOnce = sync.OnceValues(func() ([]File, error) { return Files(testData()) })

// sampleFiles is the report on testData, rendered once.
func sampleFiles(t *testing.T) map[string][]byte {
	t.Helper()
	list, err := sampleOnce()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, f := range list {
		out[f.Name] = f.Bytes
	}
	return out
}

func TestReportGolden(t *testing.T) {
	all := sampleFiles(t)
	for _, name := range []string{"report.md", "report.csv", "report.json"} {
		golden(t, name, all[name])
	}
}

func TestEmptyReportSaysSo(t *testing.T) {
	page := string(files(t, Data{})["report.md"])
	for _, want := range []string{"No run is stored yet.", "No experiment is stored yet.", "No run has both a prediction and a measured rate yet."} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing from\n%s", want, page)
		}
	}
}

// The order in which records come out of a store must not show.
func TestReportDoesNotDependOnOrder(t *testing.T) {
	want := sampleFiles(t)
	d := testData()
	slices.Reverse(d.Runs)
	slices.Reverse(d.Verdicts)
	got := files(t, d)
	for name := range want {
		if !bytes.Equal(want[name], got[name]) {
			t.Errorf("%s differs when the records come in another order", name)
		}
	}
}

// Every row of every table has the columns its head names, whatever the data
// hold, and every image of the page is among the files.
func TestReportParsesAsMarkdown(t *testing.T) {
	all := sampleFiles(t)
	src := all["report.md"]
	root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(src))
	tables, rows := 0, 0
	err := ast.Walk(root, func(n ast.Node, enter bool) (ast.WalkStatus, error) {
		if !enter {
			return ast.WalkContinue, nil
		}
		switch v := n.(type) {
		case *east.Table:
			tables++
			for row := v.FirstChild(); row != nil; row = row.NextSibling() {
				rows++
				if row.ChildCount() != len(v.Alignments) {
					t.Errorf("table %d: a row of %d cells under %d columns", tables, row.ChildCount(), len(v.Alignments))
				}
			}
		case *ast.Image:
			if _, ok := all[string(v.Destination)]; !ok {
				t.Errorf("image %s is not among the files", v.Destination)
			}
		case *ast.RawHTML, *ast.HTMLBlock:
			t.Error("raw HTML in the page: something was not escaped")
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if tables < 14 || rows < 90 {
		t.Errorf("%d tables with %d rows, want at least 14 and 90", tables, rows)
	}
}

func TestPlotsAreWellFormed(t *testing.T) {
	n := 0
	for name, raw := range sampleFiles(t) {
		switch filepath.Ext(name) {
		case ".svg":
			n++
			d := xml.NewDecoder(bytes.NewReader(raw))
			for {
				_, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					break
				}
			}
			if bytes.Contains(raw, []byte("NaN")) || bytes.Contains(raw, []byte("Inf")) {
				t.Errorf("%s holds a coordinate that is no number", name)
			}
		case ".png":
			n++
			if _, err := png.Decode(bytes.NewReader(raw)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n != 22 {
		t.Errorf("%d plot files, want 22", n)
	}
}
