package gguf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenFindsExperts(t *testing.T) {
	m, err := Open(moe().write(t, "m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Layer      int
		Projection string
		Quant      string
		Slice      int64
	}
	var got []row
	for _, e := range m.ExpertTensors {
		if e.Bytes != e.SliceBytes*int64(e.Experts) {
			t.Errorf("%s: %d bytes are not %d slices of %d", e.Name, e.Bytes, e.Experts, e.SliceBytes)
		}
		got = append(got, row{e.Layer, e.Projection, e.Quant, e.SliceBytes})
	}
	var want []row
	for l := range 2 {
		want = append(want, row{l, "gate", "Q4_0", 18 * 64}, row{l, "up", "Q4_0", 18 * 64}, row{l, "down", "Q8_0", 68 * 32})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("experts in execution order (-want +got):\n%s", d)
	}
	cycle := int64(2 * 2 * (18*64*2 + 68*32))
	if m.TokenCycle(0) != cycle || m.TokenCycle(1) != cycle/2 || m.RoutedBytes() != cycle*2 {
		t.Errorf("token cycle %d, routed %d; want %d, %d", m.TokenCycle(0), m.RoutedBytes(), cycle, cycle*2)
	}
	if d := cmp.Diff([]int{2, 2}, m.HeadsKV); d != "" || m.KeyLength != 8 || m.VocabSize != 10 || !m.TiedHead {
		t.Errorf("heads %v, key length %d, vocabulary %d, tied %t", m.HeadsKV, m.KeyLength, m.VocabSize, m.TiedHead)
	}
}

func TestOpenSortsTensors(t *testing.T) {
	c := newCrafted("deepseek2")
	c.u32("deepseek2.block_count", 3)
	c.u32("deepseek2.nextn_predict_layers", 1)
	c.u32("deepseek2.expert_count", 4)
	c.u32("deepseek2.expert_used_count", 1)
	for _, tensor := range []struct {
		name string
		dims []uint64
	}{
		{"output.weight", []uint64{32, 10}},
		{"blk.0.ffn_gate.weight", []uint64{32, 64}},             // a leading dense layer
		{"blk.1.attn_k_b.weight", []uint64{32, 8, 4}},           // as many heads as experts
		{"blk.1.ffn_gate_up_exps.weight", []uint64{32, 128, 4}}, // fused
		{"blk.1.ffn_down_exps.weight", []uint64{64, 32, 4}},
		{"blk.1.ffn_down_exps.scale", []uint64{4}},
		{"blk.1.ffn_down_exps.bias", []uint64{32, 4}},
		{"blk.1.ffn_up_shexp.weight", []uint64{32, 64}},
		{"blk.1.ffn_up_exps.weight", []uint64{32, 64, 3}}, // not as many as experts
		{"blk.2.ffn_down_exps.weight", []uint64{64, 32, 4}},
		{"blk.2.nextn.eh_proj.weight", []uint64{64, 32}},
	} {
		c.add(tensor.name, 0, tensor.dims...)
	}
	m, err := Open(c.write(t, "m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range m.ExpertTensors {
		got[x.Name] = "expert " + x.Projection
	}
	for _, x := range m.Dense {
		got[x.Name] = "dense"
	}
	for _, x := range m.Unused {
		got[x.Name] = "unused"
	}
	want := map[string]string{
		"output.weight": "dense", "blk.0.ffn_gate.weight": "dense", "blk.1.attn_k_b.weight": "dense",
		"blk.1.ffn_gate_up_exps.weight": "expert gate_up", "blk.1.ffn_down_exps.weight": "expert down",
		"blk.1.ffn_down_exps.scale": "dense", "blk.1.ffn_down_exps.bias": "dense", "blk.1.ffn_up_shexp.weight": "dense",
		"blk.1.ffn_up_exps.weight": "dense", "blk.2.ffn_down_exps.weight": "unused", "blk.2.nextn.eh_proj.weight": "unused",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("tensors (-want +got):\n%s", d)
	}
	if m.TiedHead {
		t.Error("a model with output.weight is not tied")
	}
}

// The header may end anywhere against the alignment, also exactly on it.
func TestOffsetsAtEveryResidue(t *testing.T) {
	for n := range 33 {
		c := newCrafted("llama")
		c.u32("llama.block_count", 1)
		c.text("filler", strings.Repeat("x", n))
		c.add("a", 0, 8)
		c.add("b", 0, 8)
		c.data = -1
		b := c.bytes()
		path := filepath.Join(t.TempDir(), "m.gguf")
		copy(b[len(b)-64:], "first")
		copy(b[len(b)-32:], "second")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"first", "second"} {
			at := m.Dense[i].Offset
			if got := string(b[at : at+int64(len(want))]); got != want {
				t.Errorf("filler %d: tensor %d at %d holds %q, want %q", n, i, at, got, want)
			}
		}
	}
}

func TestOtherAlignment(t *testing.T) {
	c := newCrafted("llama")
	c.u32("llama.block_count", 1)
	c.u32("general.alignment", 64)
	c.align = 64
	c.add("a", 0, 8)
	c.add("b", 0, 8)
	m, err := Open(c.write(t, "m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Dense[0].Offset%64 != 0 || m.Dense[1].Offset-m.Dense[0].Offset != 64 {
		t.Errorf("offsets %d and %d", m.Dense[0].Offset, m.Dense[1].Offset)
	}
}

func TestDenseModelIsNoError(t *testing.T) {
	c := newCrafted("llama")
	c.u32("llama.block_count", 1)
	c.add("blk.0.ffn_up.weight", 0, 8, 8)
	m, err := Open(c.write(t, "m.gguf"))
	if err != nil || len(m.ExpertTensors) != 0 || len(m.Dense) != 1 {
		t.Errorf("got %v and %v", m, err)
	}
}

func TestExpertsUsedByLayer(t *testing.T) {
	c := newCrafted("llama")
	c.u32("llama.block_count", 3)
	c.u32("llama.expert_count", 8)
	c.array("llama.expert_used_count", 4, 3, 2, 0, 0, 0, 6, 0, 0, 0, 4, 0, 0, 0)
	m, err := Open(c.write(t, "m.gguf"))
	if err != nil || m.ExpertsUsed != 6 {
		t.Errorf("got %v and %v", m, err)
	}
}

func TestHeadsByLayer(t *testing.T) {
	c := newCrafted("llama")
	c.u32("llama.block_count", 2)
	c.array("llama.attention.head_count_kv", 5, 2, 2, 0, 0, 0, 4, 0, 0, 0)
	m, err := Open(c.write(t, "m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{2, 4}, m.HeadsKV); d != "" {
		t.Error(d)
	}
}

// shards writes a model in three files and returns their paths.
func shards(t *testing.T, edit func(i int, c *crafted)) []string {
	dir := t.TempDir()
	whole := moe()
	var paths []string
	for i := range 3 {
		c := newCrafted("")
		if i == 0 {
			c.keys, c.nKeys = whole.keys, whole.nKeys
		}
		c.u16("split.no", uint16(i))
		c.u16("split.count", 3)
		c.u32("split.tensors.count", uint32(len(whole.tensors)))
		for _, x := range whole.tensors[i*3 : i*3+3] {
			c.add(x.name, x.kind, x.dims...)
		}
		if edit != nil {
			edit(i, c)
		}
		paths = append(paths, c.write(t, filepath.Join(dir, fmt.Sprintf("m-%05d-of-00003.gguf", i+1))))
	}
	return paths
}

func TestShards(t *testing.T) {
	paths := shards(t, nil)
	whole, err := Open(moe().write(t, "m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(paths, m.Shards); d != "" || m.RoutedBytes() != whole.RoutedBytes() || m.DenseBytes() != whole.DenseBytes() {
			t.Errorf("opened by %s: %d routed, %d dense bytes, shards %s", path, m.RoutedBytes(), m.DenseBytes(), d)
		}
		perShard := [3]int{}
		for _, x := range m.byPosition() {
			perShard[x.Shard]++
			if x.Offset+x.Bytes > m.Sizes[x.Shard] {
				t.Errorf("%s ends past its shard", x.Name)
			}
		}
		if perShard != [3]int{3, 3, 3} {
			t.Errorf("tensors by shard %v", perShard)
		}
	}
}

func TestMissingShardIsNamed(t *testing.T) {
	paths := shards(t, nil)
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	_, err := Open(paths[0])
	var missing *MissingShardError
	if !errors.As(err, &missing) || missing.Path != paths[1] || missing.Index != 2 || missing.Count != 3 {
		t.Errorf("got %v", err)
	}
}

func TestWrongShards(t *testing.T) {
	for name, edit := range map[string]func(i int, c *crafted){
		"header says it is shard":        func(i int, c *crafted) { swapSplitNo(i, c) },
		"it is also in":                  func(i int, c *crafted) { c.tensors[0].name = "same" },
		"the shards hold":                func(i int, c *crafted) { c.tensors = c.tensors[:2] },
		"file is truncated":              func(i int, c *crafted) { truncateSecond(i, c) },
		"the others say":                 func(i int, c *crafted) { forgetSplit(i, c) },
		"unknown type 99":                func(i int, c *crafted) { c.tensors[0].kind = 99 },
		"not a GGUF file this program c": func(i int, c *crafted) { c.version = 1 },
	} {
		paths := shards(t, edit)
		if _, err := Open(paths[0]); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func swapSplitNo(i int, c *crafted) {
	if i == 1 {
		c.keys, c.nKeys = nil, 0
		c.u16("split.no", 2)
		c.u16("split.count", 3)
	}
}

func truncateSecond(i int, c *crafted) {
	if i == 1 {
		c.data = 10
	}
}

func forgetSplit(i int, c *crafted) {
	if i == 2 {
		c.keys, c.nKeys = nil, 0
	}
}

func TestRenamedShard(t *testing.T) {
	paths := shards(t, nil)
	other := filepath.Join(filepath.Dir(paths[0]), "renamed.gguf")
	if err := os.Rename(paths[0], other); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(other); err == nil || !strings.Contains(err.Error(), "NAME-00001-of-00003.gguf") {
		t.Errorf("got %v", err)
	}
}
