package results

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSchemaDoc(t *testing.T) {
	got, err := SchemaDoc()
	must(t, err)
	path := filepath.Join("..", "docs", "schema.md")
	if *update {
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/schema.md is not what the schema says; run with -update (-want +got):\n%s", diff)
	}
	for _, e := range entities {
		if !strings.Contains(got, "\n### "+e.table+"\n") {
			t.Errorf("table %s is not described", e.table)
		}
	}
}

// Released migrations never change: a ledger made by one program must have the
// very tables that another makes, or merge calls it forged.
func TestMigrationsCountUp(t *testing.T) {
	steps, err := migrations()
	must(t, err)
	if len(steps) == 0 || SchemaVersion() != len(steps) {
		t.Fatalf("%d migrations, schema %d", len(steps), SchemaVersion())
	}
	for i, s := range steps {
		if s.version != i+1 {
			t.Errorf("migration %s is number %d", s.name, i+1)
		}
	}
	for _, step := range steps {
		for _, table := range regexp.MustCompile(`(?s)CREATE TABLE (\w+) \(.*?\)( STRICT)?;`).FindAllStringSubmatch(step.sql, -1) {
			if table[2] == "" {
				t.Errorf("table %s is not STRICT", table[1])
			}
		}
	}
}
