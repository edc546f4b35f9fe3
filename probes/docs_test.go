package probes

import (
	"os"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/planner"
)

func TestEveryFactIsInTheDocumentation(t *testing.T) {
	raw, err := os.ReadFile("../docs/probes.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	var p planner.Profile
	for _, f := range p.Facts() {
		group, _, _ := strings.Cut(f.Name, ".")
		if !strings.Contains(doc, "`"+f.Name+"`") && !strings.Contains(doc, "`"+group+".*`") {
			t.Errorf("docs/probes.md does not mention %s", f.Name)
		}
	}
}
