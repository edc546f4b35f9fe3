package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGridFitsTheTerminal(t *testing.T) {
	g := grid{numbers: []bool{2: true}}
	g.add("model", "name", "runs")
	g.add("8ed90e32957f", "synthetic qwen3moe 10x64 q4_0, called ünïcode elsewhere", "165")
	g.add("89a34ec5a4e4", "short", "7")
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, `model         name                                                     runs
8ed90e32957f  synthetic qwen3moe 10x64 q4_0, called ünïcode elsewhere   165
89a34ec5a4e4  short                                                       7
`},
		{40, `model         name                  runs
8ed90e32957f  synthetic qwen3moe     165
              10x64 q4_0, called
              ünïcode elsewhere
89a34ec5a4e4  short                    7
`},
	} {
		var b strings.Builder
		if err := g.write(&b, c.width); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("in %d columns:\n%swant\n%s", c.width, b.String(), c.want)
		}
	}
	// Where even the narrowest form is too wide, every cell is still there.
	var b strings.Builder
	if err := g.write(&b, 10); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(b.String()), ""); !strings.Contains(text, "165") || !strings.Contains(text, "elsewhere") {
		t.Errorf("in 10 columns:\n%s", b.String())
	}
}

// What lists print fits 60 columns, and a pipe gets a row a line.
func TestListsFitTheTerminal(t *testing.T) {
	raw, err := os.ReadFile("../../docs/results/sample.db")
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(t.TempDir(), "s.db")
	if err := os.WriteFile(db, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]string{{"db", "list"}, {"db", "info"}, {"experiments", "list"}} {
		t.Setenv("COLUMNS", "60")
		code, out, errs := runBmoe(t, append(list, "--db", db)...)
		if code != exitOK {
			t.Fatalf("%q: exit %d, %s", list, code, errs)
		}
		for i, line := range strings.Split(out, "\n") {
			if n := utf8.RuneCountInString(line); n > 60 && line != db {
				t.Errorf("%q, line %d has %d columns: %s", list, i+1, n, line)
			}
		}
		t.Setenv("COLUMNS", "")
		if _, wide, _ := runBmoe(t, append(list, "--db", db)...); strings.Count(wide, "\n") >= strings.Count(out, "\n") {
			t.Errorf("%q: a pipe gets as many lines as 60 columns:\n%s", list, wide)
		}
	}
}
