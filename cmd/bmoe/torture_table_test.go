//go:build torture && linux

package main

import (
	"fmt"
	"os"
	"strings"
)

// writeTable puts rows into the table of a document. Where it keeps the others,
// each takes the place of the row of the same name, or the end.
func writeTable(path string, rows []*outcome, keep bool) error {
	const begin, end = "<!-- torture:begin -->\n", "<!-- torture:end -->"
	const head = "| what was done | survived means | tried | survived |\n|---|---|---:|---:|\n"
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(raw), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no region %s", path, strings.TrimSpace(begin))
	}
	var lines []string
	if body := strings.TrimPrefix(table, head); keep && body != "" {
		lines = strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	}
	for _, o := range rows {
		line := fmt.Sprintf("| %s | %s | %d | %d |", o.what, o.survives, o.tried, o.survived)
		at := -1
		for i, old := range lines {
			if strings.HasPrefix(old, "| "+o.what+" |") {
				at = i
			}
		}
		if at < 0 {
			lines = append(lines, line)
			continue
		}
		lines[at] = line
	}
	return os.WriteFile(path, []byte(before+begin+head+strings.Join(lines, "\n")+"\n"+end+after), 0o644)
}
