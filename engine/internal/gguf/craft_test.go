package gguf

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// crafted builds GGUF bytes by hand, right or wrong.
type crafted struct {
	version uint32
	keys    []byte
	nKeys   uint64
	tensors []craftedTensor
	align   int
	data    int // bytes of tensor data; -1: what the tensors need
	// claims, when not zero, replace the counts in the header
	claimTensors, claimKeys uint64
}

type craftedTensor struct {
	name   string
	kind   uint32
	offset uint64
	dims   []uint64
}

func newCrafted(arch string) *crafted {
	c := &crafted{version: 3, align: 32, data: -1}
	if arch != "" {
		c.text("general.architecture", arch)
	}
	return c
}

// moe is a small well-formed model: two layers, four experts.
func moe() *crafted {
	c := newCrafted("qwen3moe")
	c.u32("qwen3moe.block_count", 2)
	c.u32("qwen3moe.expert_count", 4)
	c.u32("qwen3moe.expert_used_count", 2)
	c.u32("qwen3moe.embedding_length", 32)
	c.u32("qwen3moe.context_length", 128)
	c.u32("qwen3moe.attention.head_count", 4)
	c.u32("qwen3moe.attention.head_count_kv", 2)
	c.add("token_embd.weight", 0, 32, 10)
	for _, l := range []string{"0", "1"} {
		c.add("blk."+l+".ffn_down_exps.weight", 8, 64, 32, 4)
		c.add("blk."+l+".ffn_up_exps.weight", 2, 32, 64, 4)
		c.add("blk."+l+".ffn_gate_exps.weight", 2, 32, 64, 4)
		c.add("blk."+l+".ffn_gate_inp.weight", 0, 32, 4)
	}
	return c
}

func (c *crafted) key(name string, kind uint32) {
	c.nKeys++
	c.str(name)
	c.keys = binary.LittleEndian.AppendUint32(c.keys, kind)
}

func (c *crafted) str(s string) {
	c.keys = binary.LittleEndian.AppendUint64(c.keys, uint64(len(s)))
	c.keys = append(c.keys, s...)
}

func (c *crafted) text(name, v string) { c.key(name, 8); c.str(v) }

func (c *crafted) u32(name string, v uint32) {
	c.key(name, 4)
	c.keys = binary.LittleEndian.AppendUint32(c.keys, v)
}

func (c *crafted) u16(name string, v uint16) {
	c.key(name, 2)
	c.keys = binary.LittleEndian.AppendUint16(c.keys, v)
}

func (c *crafted) array(name string, kind uint32, n uint64, items ...byte) {
	c.key(name, 9)
	c.keys = binary.LittleEndian.AppendUint32(c.keys, kind)
	c.keys = binary.LittleEndian.AppendUint64(c.keys, n)
	c.keys = append(c.keys, items...)
}

// testSizes are block and byte sizes of the types the tests use.
var testSizes = map[uint32][2]uint64{0: {1, 4}, 1: {1, 2}, 2: {32, 18}, 8: {32, 34}, 14: {256, 210}, 39: {32, 17}}

func (c *crafted) size(t craftedTensor) uint64 {
	s := testSizes[t.kind]
	if s[0] == 0 || len(t.dims) == 0 {
		return 0
	}
	n := t.dims[0] / s[0] * s[1]
	for _, d := range t.dims[1:] {
		n *= d
	}
	return n
}

// add appends a tensor after the others.
func (c *crafted) add(name string, kind uint32, dims ...uint64) {
	var at uint64
	if n := len(c.tensors); n > 0 {
		last := c.tensors[n-1]
		at = pad(last.offset+c.size(last), uint64(c.align))
	}
	c.tensors = append(c.tensors, craftedTensor{name, kind, at, dims})
}

func pad(n, a uint64) uint64 { return (n + a - 1) / a * a }

func (c *crafted) bytes() []byte {
	b := []byte("GGUF")
	b = binary.LittleEndian.AppendUint32(b, c.version)
	b = binary.LittleEndian.AppendUint64(b, max(c.claimTensors, uint64(len(c.tensors))))
	b = binary.LittleEndian.AppendUint64(b, max(c.claimKeys, c.nKeys))
	b = append(b, c.keys...)
	var end uint64
	for _, t := range c.tensors {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(t.name)))
		b = append(b, t.name...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.dims)))
		for _, d := range t.dims {
			b = binary.LittleEndian.AppendUint64(b, d)
		}
		b = binary.LittleEndian.AppendUint32(b, t.kind)
		b = binary.LittleEndian.AppendUint64(b, t.offset)
		end = max(end, t.offset+c.size(t))
	}
	b = append(b, make([]byte, pad(uint64(len(b)), uint64(c.align))-uint64(len(b)))...)
	if c.data >= 0 {
		end = uint64(c.data)
	}
	return append(b, make([]byte, end)...)
}

func (c *crafted) write(t testing.TB, path string) string {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.TempDir(), path)
	}
	if err := os.WriteFile(path, c.bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
