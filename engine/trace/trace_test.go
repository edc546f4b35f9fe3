package trace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var sample = Trace{
	Header: Header{Model: "m.gguf", Arch: "qwen3moe", Experts: 4, Used: 2, Layers: []Layer{{ExpertBytes: 10, DenseBytes: 3}, {ExpertBytes: 20, DenseBytes: 3}}},
	Picks: []Pick{
		{Turn: 0, Phase: Prompt, Step: 0, Layer: 0, Slot: 0, Expert: 3, Weight: 0.25, Bytes: 10},
		{Turn: 0, Phase: Prompt, Step: 1, Layer: 0, Slot: 0, Expert: 3, Weight: NoWeight},
		{Turn: 0, Phase: Decode, Step: 2, Layer: 1, Slot: 1, Expert: 0, Weight: 0.097699, Hit: true},
	},
}

const sampleText = `# route_trace v1
# model=m.gguf arch=qwen3moe n_layer=2 n_expert=4 n_expert_used=2
# layer=0 expert_bytes=10 dense_bytes=3
# layer=1 expert_bytes=20 dense_bytes=3
turn,phase,step,layer,slot,expert,weight,residency,expert_bytes
0,0,0,0,0,3,0.25,0,10
0,0,1,0,0,3,,0,0
0,1,2,1,1,0,0.097699,1,0
`

func write(t testing.TB, tr *Trace) string {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, tr.Header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tr.Picks {
		w.Pick(&tr.Picks[i])
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriteThenRead(t *testing.T) {
	tr := sample
	tr.Model = "/home/someone/m.gguf"
	if diff := cmp.Diff(sampleText, write(t, &tr)); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	got, err := Read(strings.NewReader(sampleText))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&sample, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	row := func(s string) string { return "# layer=0 expert_bytes=1\n" + columns + "\n" + s + "\n" }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "is this a routing trace?"},
		{"other csv", "a,b\n1,2\n", `line 1: column names "a,b"`},
		{"no rows", columns + "\n", "the trace is empty"},
		{"short row", row("0,0,0,0,0,1,0.5,0"), "line 3: 8 columns, want 9"},
		{"long row", row("0,0,0,0,0,1,0.5,0,0,0"), "line 3: 10 columns, want 9"},
		{"phase", row("0,2,0,0,0,1,0.5,0,0"), `phase "2": want a whole number from 0 to 1`},
		{"negative", row("0,0,0,0,0,-1,0.5,0,0"), `expert "-1"`},
		{"huge layer", row("0,0,0,99999,0,1,0.5,0,0"), `layer "99999"`},
		{"weight", row("0,0,0,0,0,1,NaN,0,0"), `weight "NaN"`},
		{"residency", row("0,0,0,0,0,1,0.5,2,0"), `residency "2"`},
		{"header size", "# layer=0 expert_bytes=-4\n", `line 1: expert_bytes "-4"`},
		{"experts", "# n_expert=2\n" + row("0,0,0,0,0,2,0.5,0,0"), "expert 2 picked, but the header says n_expert=2"},
		{"too many cells", "# n_layer=4096 n_expert=65536\n" + row("0,0,0,0,0,1,0.5,0,0"), "more than 16777216 in all"},
		{"no size", columns + "\n0,1,0,0,0,1,0.5,1,0\n", "layer 0 has no size"},
		{"endless line", columns + "\n" + strings.Repeat("1", 1<<17), "line 2: bufio.Scanner: token too long"},
	} {
		_, err := Read(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestWriterKeepsTheFirstError(t *testing.T) {
	boom := errors.New("disk full")
	w, err := NewWriter(failing{boom}, sample.Header)
	if err != nil {
		t.Fatal(err)
	}
	for range 1 << 13 { // more than the buffer
		w.Pick(&sample.Picks[0])
	}
	if err := w.Flush(); !errors.Is(err, boom) {
		t.Errorf("flush: %v, want %v", err, boom)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestPickDoesNotAllocate(t *testing.T) {
	w, err := NewWriter(&bytes.Buffer{}, sample.Header)
	if err != nil {
		t.Fatal(err)
	}
	w.w.Reset(nopWriter{})
	if n := testing.AllocsPerRun(1000, func() { w.Pick(&sample.Picks[2]) }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

type nopWriter struct{}

func (nopWriter) Write(p []byte) (int, error) { return len(p), nil }

// The published trace comes back byte for byte, comments aside.
func TestPublishedTraceRoundTrips(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "routing", "qwen.route.csv"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("../shared/data/routing/qwen.route.csv is not beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	_, wantRows, _ := strings.Cut(string(raw), columns)
	_, gotRows, _ := strings.Cut(write(t, tr), columns)
	if gotRows != wantRows {
		t.Error("rows differ after reading and writing")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sampleText)
	f.Add("# layer=4095 expert_bytes=1\n" + columns + "\n0,1,0,0,0,1,,1,0\n")
	f.Add("# n_layer=x\n")
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		again, err := Read(strings.NewReader(write(t, tr)))
		if err != nil {
			t.Fatalf("a trace that was read does not read back: %v", err)
		}
		if len(again.Picks) != len(tr.Picks) || len(again.Layers) != len(tr.Layers) {
			t.Fatalf("%d rows of %d layers became %d of %d", len(tr.Picks), len(tr.Layers), len(again.Picks), len(again.Layers))
		}
	})
}
