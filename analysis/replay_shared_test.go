package analysis

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/trace"
)

const mib = 1 << 20

func sharedRouting(tb testing.TB, name string) string {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "routing", name))
	if errors.Is(err, os.ErrNotExist) {
		tb.Skipf("../shared/data/routing/%s is not beside the repository", name)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

func qwenTrace(tb testing.TB) *trace.Trace {
	tb.Helper()
	t, err := trace.Read(strings.NewReader(sharedRouting(tb, "qwen.route.csv")))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func qwenRouting(tb testing.TB) *Routing {
	r, _ := NewRouting(qwenTrace(tb))
	return r
}

// publishedRow is a row of another team's replay of the same trace.
type publishedRow struct {
	budget               int64 // bytes
	policy               string
	cum, decode, readMiB float64 // the rates in percent
}

func qwenCurve(tb testing.TB) (rows []publishedRow) {
	tb.Helper()
	lines, err := csv.NewReader(strings.NewReader(sharedRouting(tb, "qwen-curve.csv"))).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
	for _, f := range lines[1:] {
		rows = append(rows, publishedRow{int64(number(f[0])) * mib, f[1], number(f[2]), number(f[3]), number(f[4])})
	}
	return rows
}
