package synth

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/internal/gguf"
)

// tiny is a checkpoint of two layers as llama2.c writes it, and its tokenizer.
func tiny(headed bool) (weights, tokenizer []byte) {
	const dim, hidden, layers, heads, kv, vocab, context = 32, 40, 2, 4, 2, 300, 16
	v := int32(vocab)
	n := vocab*dim + layers*(2*dim+2*dim*dim+2*dim*dim/2+3*dim*hidden) + dim + context*dim/heads
	if headed {
		v = -v
		n += vocab * dim
	}
	for _, h := range []int32{dim, hidden, layers, heads, kv, v, context} {
		weights = binary.LittleEndian.AppendUint32(weights, uint32(h))
	}
	r := newRNG(5, "tiny", 0)
	for range n {
		weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(float32(0.2*r.gauss())))
	}
	tokenizer = binary.LittleEndian.AppendUint32(nil, 8)
	for i := range vocab {
		word := strings.Repeat(" ", i%2) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		tokenizer = binary.LittleEndian.AppendUint32(tokenizer, math.Float32bits(-float32(i)))
		tokenizer = binary.LittleEndian.AppendUint32(tokenizer, uint32(len(word)))
		tokenizer = append(tokenizer, word...)
	}
	return weights, tokenizer
}

func upcycle(t *testing.T, headed bool, edit func(u *Upcycle)) (*gguf.Model, Upcycle) {
	t.Helper()
	dir := t.TempDir()
	w, tok := tiny(headed)
	u := Upcycle{Weights: filepath.Join(dir, "w.bin"), Tokenizer: filepath.Join(dir, "t.bin"), Experts: 4, Used: 2, Type: "f32", Seed: 1, Shards: 1}
	for path, b := range map[string][]byte{u.Weights: w, u.Tokenizer: tok} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit(&u)
	sum, err := WriteUpcycled(context.Background(), filepath.Join(dir, "m.gguf"), u, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := gguf.Open(sum.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	return m, u
}

// floats reads an f32 tensor; expert e of an expert tensor.
func floats(t *testing.T, m *gguf.Model, x gguf.ExpertTensor, e int) []float32 {
	t.Helper()
	b, err := os.ReadFile(m.Shards[0])
	if err != nil {
		t.Fatal(err)
	}
	b = b[x.Offset+int64(e)*x.SliceBytes:][:x.SliceBytes]
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(le.Uint32(b[4*i:]))
	}
	return out
}

// swiglu is the feed-forward layer both models have.
func swiglu(x []float64, gate, up, down []float32, hidden int) []float64 {
	dot := func(row []float32, v []float64) (s float64) {
		for i, w := range row {
			s += float64(w) * v[i]
		}
		return s
	}
	h := make([]float64, hidden)
	for j := range h {
		g := dot(gate[j*len(x):][:len(x)], x)
		h[j] = g / (1 + math.Exp(-g)) * dot(up[j*len(x):][:len(x)], x)
	}
	out := make([]float64, len(x))
	for i := range out {
		out[i] = dot(down[i*hidden:][:hidden], h)
	}
	return out
}

func TestUpcycledExpertsAreTheDenseLayer(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(u *Upcycle)
		width int
		same  bool
	}{
		"as it is": {func(u *Upcycle) {}, 32, true},
		"widened":  {func(u *Upcycle) { u.Embd, u.FF = 64, 64 }, 64, true},
		"noisy":    {func(u *Upcycle) { u.Noise = 0.3 }, 32, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, u := upcycle(t, false, tc.edit)
			c, err := readCheckpoint(u.Weights, u.Tokenizer)
			if err != nil {
				t.Fatal(err)
			}
			x := make([]float64, tc.width)
			for i := range c.dim {
				x[i] = math.Sin(float64(i))
			}
			for l := range c.layers {
				at := l * c.hidden * c.dim
				want := swiglu(x[:c.dim], c.gate[at:], c.up[at:], c.down[at:], c.hidden)
				var seen [][]float32
				for e := range u.Experts {
					gate := floats(t, m, m.ExpertTensors[3*l], e)
					got := swiglu(x, gate, floats(t, m, m.ExpertTensors[3*l+1], e), floats(t, m, m.ExpertTensors[3*l+2], e), len(gate)/tc.width)
					if d := distance(got, want); (d < 1e-6) != tc.same {
						t.Errorf("layer %d expert %d: output differs from the dense layer's by %g", l, e, d)
					}
					for _, other := range seen {
						if floatsEqual(gate, other) {
							t.Errorf("layer %d: expert %d has the bytes of another", l, e)
						}
					}
					seen = append(seen, gate)
				}
			}
		})
	}
}

func floatsEqual(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// distance is relative; values of the padding must be zero.
func distance(got, want []float64) float64 {
	var d, n float64
	for i, v := range got {
		w := 0.0
		if i < len(want) {
			w = want[i]
		}
		d, n = d+(v-w)*(v-w), n+w*w
	}
	return math.Sqrt(d / n)
}

func TestUpcycledLayout(t *testing.T) {
	m, _ := upcycle(t, true, func(u *Upcycle) { u.Type, u.Shards = "q8_0", 2 })
	if m.TiedHead || len(m.Shards) != 2 || m.Arch != "llama" || m.Experts != 4 || m.ExpertsUsed != 2 || m.VocabSize != 300 || m.ContextSize != 16 {
		t.Errorf("got %+v", m)
	}
	if x := m.ExpertTensors[0]; x.Dims[1] != 64 || x.Quant != "Q8_0" {
		t.Errorf("40 hidden units in blocks of 32 make %v of %s, want 64", x.Dims, x.Quant)
	}
	tied, _ := upcycle(t, false, func(u *Upcycle) {})
	if !tied.TiedHead {
		t.Error("a positive vocabulary size means a tied head")
	}
}

func TestBadCheckpoints(t *testing.T) {
	w, tok := tiny(false)
	edit := func(b []byte, at int, v uint32) []byte {
		b = bytes.Clone(b)
		le.PutUint32(b[at:], v)
		return b
	}
	for name, tc := range map[string]struct {
		w, tok []byte
		want   string
	}{
		"empty":             {nil, tok, "not a llama2.c checkpoint"},
		"short":             {w[:len(w)-4], tok, "calls for"},
		"long":              {append(bytes.Clone(w), 0), tok, "calls for"},
		"huge":              {edit(w, 0, 1<<20), tok, "not a llama2.c checkpoint"},
		"negative":          {edit(w, 4, 1<<31), tok, "hidden -2147483648"},
		"heads":             {edit(w, 12, 5), tok, "heads"},
		"gguf":              {append([]byte("GGUF"), w...), tok, "not a llama2.c checkpoint"},
		"short tokenizer":   {w, tok[:100], "not the tokenizer"},
		"long tokenizer":    {w, append(bytes.Clone(tok), 1), "not the tokenizer"},
		"bad token length":  {w, edit(tok, 8, math.MaxUint32), "token 0 has length"},
		"swapped arguments": {tok, w, "not a llama2.c checkpoint"},
	} {
		dir := t.TempDir()
		u := Upcycle{Weights: filepath.Join(dir, "w.bin"), Tokenizer: filepath.Join(dir, "t.bin"), Experts: 4, Used: 2, Type: "f32", Shards: 1}
		for path, b := range map[string][]byte{u.Weights: tc.w, u.Tokenizer: tc.tok} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := WriteUpcycled(context.Background(), filepath.Join(dir, "m.gguf"), u, Options{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if left, _ := os.ReadDir(dir); len(left) != 2 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

func TestUpcycleCheck(t *testing.T) {
	good := Upcycle{Experts: 4, Used: 2, Type: "q8_0", Shards: 1}
	for want, edit := range map[string]func(u *Upcycle){
		"--type q4_k: --from-llama2c writes": func(u *Upcycle) { u.Type = "q4_k" },
		"--experts 0":                        func(u *Upcycle) { u.Experts = 0 },
		"--experts-used 5":                   func(u *Upcycle) { u.Used = 5 },
		"--noise NaN":                        func(u *Upcycle) { u.Noise = math.NaN() },
		"--shards 0":                         func(u *Upcycle) { u.Shards = 0 },
	} {
		u := good
		edit(&u)
		if err := u.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

// The real checkpoint, where it is at hand.
func TestUpcycleStories(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data", "stories260K")
	u := Upcycle{Weights: filepath.Join(dir, "stories260K.bin"), Tokenizer: filepath.Join(dir, "tok512.bin"), Experts: 64, Used: 8, Noise: 0.05, Type: "q8_0", Seed: 1, Shards: 1}
	if _, err := os.Stat(u.Weights); err != nil {
		t.Skipf("the story model is not at hand: %v", err)
	}
	sum, err := WriteUpcycled(context.Background(), filepath.Join(t.TempDir(), "m.gguf"), u, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := gguf.Open(sum.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	if m.Layers != 5 || len(m.ExpertTensors) != 15 || m.ExpertTensors[0].SliceBytes != 64*192/32*34 || m.VocabSize != 512 {
		t.Errorf("got %d layers, %d expert tensors, slices of %d, %d tokens", m.Layers, len(m.ExpertTensors), m.ExpertTensors[0].SliceBytes, m.VocabSize)
	}
}

func FuzzCheckpoint(f *testing.F) {
	w, tok := tiny(false)
	f.Add(w[:60], tok[:60])
	f.Add(w[:28], []byte{})
	f.Fuzz(func(t *testing.T, weights, tokenizer []byte) {
		c := &checkpoint{}
		if c.parse(weights) != nil {
			return
		}
		if c.parseTokens(tokenizer) == nil && len(c.tokens) != c.vocab {
			t.Errorf("%d tokens of %d", len(c.tokens), c.vocab)
		}
	})
}
