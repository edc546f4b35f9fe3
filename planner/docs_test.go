package planner

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentCoversThePlanner keeps docs/planner.md complete: every stage,
// every topic a plan in testdata has, every policy number with its value.
func TestDocumentCoversThePlanner(t *testing.T) {
	raw, err := os.ReadFile("../docs/planner.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	for _, name := range StageNames() {
		if !strings.Contains(doc, "| `"+name+"` |") {
			t.Errorf("stage %s is not in the table of stages", name)
		}
	}
	files, _ := filepath.Glob("testdata/plans/*.txt")
	topics := map[string]string{}
	for _, f := range files {
		for _, d := range planOf(t, readCase(t, f)).Decisions {
			topics[d.Topic] = f
		}
	}
	for topic, f := range topics {
		if !strings.Contains(doc, "`"+topic+"`") {
			t.Errorf("topic %s (%s) is not documented", topic, f)
		}
	}
	var numbers map[string]float64
	data, _ := json.Marshal(DefaultPolicy())
	if err := json.Unmarshal(data, &numbers); err != nil {
		t.Fatal(err)
	}
	for name, v := range numbers {
		if name == "hit_lo" || name == "hit_hi" {
			continue // one row holds both
		}
		if row := fmt.Sprintf("| `%s` | %s |", name, strconv.FormatFloat(v, 'f', -1, 64)); !strings.Contains(doc, row) {
			t.Errorf("the policy table lacks %q", row)
		}
	}
}
