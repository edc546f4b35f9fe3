package synth

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/engine/internal/gguf"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// small is a model of a few hundred kilobytes.
func small() Spec {
	s := Default()
	s.Layers, s.Experts, s.Used, s.Embd, s.FF, s.Vocab = 4, 8, 2, 64, 32, 512
	return s
}

// shapes are the layouts that the engine must serve.
var shapes = map[string]func(s *Spec){
	"qwen3moe": func(s *Spec) {},
	"llama":    func(s *Spec) { s.Arch = "llama" },
	"olmoe":    func(s *Spec) { s.Arch = "olmoe" },
	"qwen2moe": func(s *Spec) { s.Arch = "qwen2moe" },
	"deepseek2": func(s *Spec) {
		s.Arch, s.DenseLead, s.MTP, s.FusedGateUp, s.TiedHead, s.Groups, s.GroupsUsed = "deepseek2", 1, true, true, true, 4, 2
	},
	"gpt-oss": func(s *Spec) { s.Arch, s.Type = "gpt-oss", "mxfp4" },
	"mixed":   func(s *Spec) { s.Mixed = true },
	"kquants": func(s *Spec) { s.Type, s.Mixed, s.Embd, s.FF = "q4_k", true, 256, 256 },
	"scaled":  func(s *Spec) { s.Scaled, s.Type = true, "f16" },
	"shards":  func(s *Spec) { s.Shards = 4 },
}

func shape(name string) Spec {
	s := small()
	shapes[name](&s)
	return s
}

func mustWrite(t testing.TB, path string, s Spec) Summary {
	t.Helper()
	sum, err := Write(context.Background(), path, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestSameSpecSameBytes(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, s Spec, workers int) []byte {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		path := filepath.Join(dir, name)
		mustWrite(t, path, s)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := write("a", small(), 1)
	if !bytes.Equal(first, write("b", small(), 4)) {
		t.Error("the number of workers changes the bytes")
	}
	other := small()
	other.Seed = 2
	if bytes.Equal(first, write("c", other, 4)) {
		t.Error("the seed changes nothing")
	}
	other = small()
	other.Skew = 1
	if bytes.Equal(first, write("d", other, 4)) {
		t.Error("the skew changes nothing")
	}
}

// The table of tensors is what engine, planner and llama.cpp agree upon.
func TestLayoutGolden(t *testing.T) {
	for name := range shapes {
		t.Run(name, func(t *testing.T) {
			sum := mustWrite(t, filepath.Join(t.TempDir(), "m.gguf"), shape(name))
			m, err := gguf.Open(sum.Files[0])
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%s layers %d mtp %d experts %d used %d context %d embedding %d vocabulary %d tied %t heads %v key %d value %d shards %d\n",
				m.Arch, m.Layers, m.MTPLayers, m.Experts, m.ExpertsUsed, m.ContextSize, m.Embedding, m.VocabSize, m.TiedHead, m.HeadsKV, m.KeyLength, m.ValueLength, len(m.Shards))
			for _, x := range m.ExpertTensors {
				fmt.Fprintf(&b, "expert %d %s %s %v slice %d\n", x.Layer, x.Projection, x.Quant, x.Dims, x.SliceBytes)
			}
			for _, x := range m.Dense {
				fmt.Fprintf(&b, "dense %s %s %v\n", x.Name, x.Quant, x.Dims)
			}
			for _, x := range m.Unused {
				fmt.Fprintf(&b, "unused %s %s %v\n", x.Name, x.Quant, x.Dims)
			}
			golden(t, filepath.Join("testdata", name+".layout"), b.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got); go test -update rewrites it:\n%s", path, d)
	}
}

// What the adapter says of a tensor's place is where its bytes are.
func TestAdapterFindsEveryTensor(t *testing.T) {
	for name := range shapes {
		t.Run(name, func(t *testing.T) {
			s := shape(name)
			sum := mustWrite(t, filepath.Join(t.TempDir(), "m.gguf"), s)
			m, err := gguf.Open(sum.Files[len(sum.Files)-1])
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]gguf.Tensor{}
			for _, x := range m.ExpertTensors {
				found[x.Name] = x.Tensor
			}
			for _, x := range append(m.Dense, m.Unused...) {
				found[x.Name] = x
			}
			b, err := build(s)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != len(b.tensors) || sum.Tensors != len(found) {
				t.Fatalf("%d tensors found, %d written, %d planned", len(found), sum.Tensors, len(b.tensors))
			}
			for i := range b.tensors {
				if err := sameBytes(m, found[b.tensors[i].name], &b.tensors[i]); err != nil {
					t.Error(err)
				}
			}
			if m.RoutedBytes() != sum.RoutedBytes {
				t.Errorf("%d bytes of experts found, summary says %d", m.RoutedBytes(), sum.RoutedBytes)
			}
		})
	}
}

func sameBytes(m *gguf.Model, at gguf.Tensor, want *tensor) error {
	f, err := os.Open(m.Shards[at.Shard])
	if err != nil {
		return err
	}
	defer f.Close()
	if at.Bytes != want.size() || at.Type != want.quant.id {
		return fmt.Errorf("%s: found %d bytes of type %d, want %d of %d", want.name, at.Bytes, at.Type, want.size(), want.quant.id)
	}
	got := make([]byte, at.Bytes)
	if _, err := f.ReadAt(got, at.Offset); err != nil {
		return err
	}
	per := want.src.unitBytes()
	for u := range want.units() {
		part := got[int64(u)*per : min(int64(u+1)*per, at.Bytes)]
		made := make([]byte, len(part))
		want.src.fill(made, u)
		if !bytes.Equal(part, made) {
			return fmt.Errorf("%s: unit %d at %d is not what was made", want.name, u, at.Offset)
		}
	}
	return nil
}

func TestShardsAreNamedAndEven(t *testing.T) {
	s := small()
	s.Shards = 4
	dir := t.TempDir()
	sum := mustWrite(t, filepath.Join(dir, "m-00001-of-00009.gguf"), s)
	for i, f := range sum.Files {
		if want := filepath.Join(dir, fmt.Sprintf("m-%05d-of-00004.gguf", i+1)); f != want {
			t.Errorf("shard %d is %s, want %s", i, f, want)
		}
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if share := float64(info.Size()) / float64(sum.Bytes); share < 0.1 || share > 0.45 {
			t.Errorf("%s holds %.2f of the model", f, share)
		}
	}
}

func TestCancelLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	s := small()
	s.Layers, s.Embd, s.FF, s.Shards = 8, 256, 256, 2
	_, err := Write(ctx, filepath.Join(dir, "m.gguf"), s, Options{Progress: func(done, total int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestExistingFileIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Write(context.Background(), path, small(), Options{})
	if b, _ := os.ReadFile(path); !errors.Is(err, ErrExists) || string(b) != "mine" {
		t.Errorf("got %v, file holds %d bytes", err, len(b))
	}
	if _, err := Write(context.Background(), path, small(), Options{Force: true}); err != nil {
		t.Error(err)
	}
	if _, err := gguf.Open(path); err != nil {
		t.Error(err)
	}
	if _, err := Write(context.Background(), filepath.Join(path, "x.gguf"), small(), Options{}); err == nil {
		t.Error("a file was taken for a folder")
	}
}

func TestProgressReachesTheEnd(t *testing.T) {
	var last, total int64
	s := small()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	_, err := Write(context.Background(), filepath.Join(t.TempDir(), "m.gguf"), s, Options{Progress: func(d, n int64) { last, total = max(last, d), n }})
	if err != nil || last == 0 || last > total || float64(last) < 0.9*float64(total) {
		t.Errorf("progress ended at %d of %d: %v", last, total, err)
	}
}

func BenchmarkWrite(b *testing.B) {
	s := Default()
	s.Layers = 4
	path := filepath.Join(b.TempDir(), "m.gguf")
	for b.Loop() {
		sum, err := Write(context.Background(), path, s, Options{Force: true})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(sum.Bytes)
	}
}

// BenchmarkFill is the making of random blocks alone, on one core.
func BenchmarkFill(b *testing.B) {
	for _, name := range TypeNames() {
		q := quants[name]
		src := &randomSource{seed: 1, name: name, quant: q, mend: q.prepare(0.02, q.spread)}
		buf := make([]byte, src.unitBytes())
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				src.fill(buf, 3)
			}
		})
	}
}
