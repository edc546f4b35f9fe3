package reports

import (
	"regexp"
	"strings"
	"testing"
)

// The page must stand alone: nothing in it may name another place.
func TestHTMLStandsAlone(t *testing.T) {
	page := string(sampleFiles(t)["report.html"])
	for _, m := range regexp.MustCompile(`(?:src|href|url)\s*[=(]\s*["']?([^"')>\s]+)`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "data:") && !strings.HasPrefix(m[1], "#") {
			t.Errorf("the page refers to %.60s", m[1])
		}
	}
	if strings.Contains(page, "http:") || strings.Contains(page, "https:") {
		t.Error("the page holds an address")
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
	if !strings.Contains(page, "is &lt;more&gt; better?") {
		t.Error("the question is not in the page, or not escaped")
	}
}

// What one format says the other says too.
func TestHTMLHasAllSections(t *testing.T) {
	doc, err := New(testData())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := doc.HTML()
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	tables, figures := 0, 0
	for _, s := range doc.Sections {
		if !strings.Contains(page, `<section id="`+s.ID+`">`) {
			t.Errorf("section %s is missing", s.ID)
		}
		for _, b := range s.Blocks {
			switch b.(type) {
			case Table:
				tables++
			case Figure:
				figures++
			}
		}
	}
	if n := strings.Count(page, "<table>"); n != tables {
		t.Errorf("%d tables in the page, %d in the document", n, tables)
	}
	if n := strings.Count(page, "<img "); n != figures {
		t.Errorf("%d images in the page, %d in the document", n, figures)
	}
}
