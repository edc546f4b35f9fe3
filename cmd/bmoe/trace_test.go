package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bmoe runs the program in process.
func runBmoe(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

const tinyTrace = `# route_trace v1
# model=tiny.gguf arch=llama n_layer=1 n_expert=3 n_expert_used=1
# layer=0 expert_bytes=1048576 dense_bytes=0
turn,phase,step,layer,slot,expert,weight,residency,expert_bytes
0,0,0,0,0,0,1,0,1048576
0,1,1,0,0,1,1,0,1048576
0,1,2,0,0,0,1,1,0
0,1,3,0,0,2,1,0,1048576
0,1,4,0,0,0,1,1,0
`

func tinyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "route.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTraceReplayJSON(t *testing.T) {
	code, out, errs := runBmoe(t, "trace", "replay", tinyFile(t, tinyTrace), "--policy", "lru,stack-distance,belady", "--budget-mb", "1-2", "--json")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var doc replayDoc
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	var want []replayRow
	for _, p := range []string{"lru", "stack-distance", "belady"} {
		want = append(want,
			replayRow{Policy: p, BudgetMB: 1, ReadMiB: 5},
			replayRow{Policy: p, BudgetMB: 2, HitPctCum: 40, HitPctDecode: 50, ByteHitPctDecode: 50, ReadMiB: 3})
	}
	if diff := cmp.Diff(want, doc.Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestTraceReplayFailsPlainly(t *testing.T) {
	file := tinyFile(t, tinyTrace)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"trace"}, exitUsage, "bmoe trace replay FILE"},
		{[]string{"trace", "replay"}, exitUsage, "takes one trace file"},
		{[]string{"trace", "replay", file + ".no"}, exitUsage, "--route-trace FILE"},
		{[]string{"trace", "replay", tinyFile(t, "a,b\n")}, exitData, "line 1"},
		{[]string{"trace", "replay", file, "--policy", "mru"}, exitUsage, `policy "mru": want one of a2d`},
		{[]string{"trace", "replay", file, "--budget-mb", "4-2"}, exitUsage, "the range ends before it starts"},
		{[]string{"trace", "replay", file, "--budget-mb", "1-8*1"}, exitUsage, "a factor of at least 2"},
		{[]string{"trace", "replay", file, "--budget-mb", "1,,2"}, exitUsage, `--budget-mb "": want a number from 0 up`},
		{[]string{"trace", "replay", file, "--budget-mb=-1"}, exitUsage, `--budget-mb "-1": want a number from 0 up`},
		{[]string{"trace", "replay", file, "--budget-mb", "NaN"}, exitUsage, `--budget-mb "NaN": want a number from 0 up`},
		{[]string{"trace", "replay", file, "--budget-mb", "1-9223372036854775807*2"}, exitUsage, "more than any memory"},
		{[]string{"trace", "replay", file, "--budget-mb", "1-4000,1-4000"}, exitUsage, "more than 4096 values"},
		{[]string{"trace", "replay", file, "--policy="}, exitUsage, "no policy is named"},
		{[]string{"trace", "replay", file, "--budget-mb", "x"}, exitUsage, "want a number from 0 up"},
		{[]string{"trace", "replay", file, "--budget-mb", "1e300"}, exitUsage, "more than any memory"},
		{[]string{"trace", "replay", file, "--budget-mb", "1-9999999"}, exitUsage, "more than 4096 values"},
	} {
		code, out, errs := runBmoe(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want exit %d and %q", c.args, code, out, errs, c.code, c.want)
		}
	}
}

func TestTraceReplayTable(t *testing.T) {
	code, out, errs := runBmoe(t, "trace", "replay", tinyFile(t, tinyTrace), "--policy", "lru", "--budget-mb", "2")
	want := `tiny.gguf: 1 layers of 3 experts, 3 MiB in all, token cycle 1 MiB, 5 lookups

  policy  budget MiB  hit % all  hit % decode  byte hit % decode  read MiB
     lru           2      40.00         50.00              50.00       3.0
`
	if code != exitOK || out != want {
		t.Errorf("exit %d, stderr %q, stdout (-want +got):\n%s", code, errs, cmp.Diff(want, out))
	}
}

func TestTraceReplayOfPublishedTrace(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "data", "routing", "qwen.route.csv")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		t.Skip("../shared/data/routing/qwen.route.csv is not beside the repository")
	}
	code, out, errs := runBmoe(t, "trace", "replay", path, "--policy", "lru,layer-lfu,belady,stack-distance", "--budget-mb", "4000", "--json")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var doc replayDoc
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"lru": 80.287, "layer-lfu": 82.134, "belady": 92.716, "stack-distance": 80.287}
	for _, row := range doc.Rows {
		if math.Abs(row.HitPctDecode-want[row.Policy]) > 0.001 {
			t.Errorf("%s: %.3f %% of decode lookups hit, want %.3f", row.Policy, row.HitPctDecode, want[row.Policy])
		}
	}
	if len(doc.Rows) != len(want) {
		t.Errorf("%d rows, want %d", len(doc.Rows), len(want))
	}
}

func TestBudgets(t *testing.T) {
	for text, want := range map[string][]int64{
		"5": {5 * mib}, "0.5": {mib / 2}, "1-3": {mib, 2 * mib, 3 * mib}, "1-8*2, 9": {mib, 2 * mib, 4 * mib, 8 * mib, 9 * mib}, "0": {0},
	} {
		got, err := replayBudgets(text, nil)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{",", "1,", "-1", "1-", "1-2+0", "1-2*1", "NaN", "0-4*2", "1-2-3", "0x10", "１"} {
		if got, err := replayBudgets(text, nil); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}
