package analysis

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The table of docs/method.md is what the code computes.
func TestMethodTable(t *testing.T) {
	raw, err := os.ReadFile("../docs/method.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(raw)) {
		var n int
		if _, err := fmt.Sscanf(line, "| %d |", &n); err != nil {
			continue
		}
		rows++
		want := fmt.Sprintf("| %d |", n)
		for _, level := range []float64{0.95, 0.90} {
			k, attained, ok := Cut(n, level)
			if ok {
				want += fmt.Sprintf(" %d | %s |", k, Level(attained))
			} else {
				want += " none | |"
			}
		}
		want += fmt.Sprintf(" %.4f |\n", SmallestP(n)+1e-12) // halves round up
		if line != want {
			t.Errorf("row %q, computed %q", line, want)
		}
	}
	if rows != 7 {
		t.Errorf("%d rows", rows)
	}
}
