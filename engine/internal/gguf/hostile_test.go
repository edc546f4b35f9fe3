package gguf

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestHostileFiles(t *testing.T) {
	tensor := func(dims ...uint64) func(*crafted) {
		return func(c *crafted) { c.add("x", 0, dims...) }
	}
	for name, tc := range map[string]struct {
		edit func(*crafted)
		want string
	}{
		"no architecture":       {func(c *crafted) { c.keys, c.nKeys = nil, 0 }, "general.architecture"},
		"no layers":             {func(c *crafted) { *c = *newCrafted("other"); c.add("x", 0, 8) }, "block_count"},
		"many tensors":          {func(c *crafted) { c.claimTensors = math.MaxUint64 }, "header claims"},
		"many keys":             {func(c *crafted) { c.claimKeys = 1 << 40 }, "header claims"},
		"more tensors than are": {func(c *crafted) { c.claimTensors, c.data = 1000, 0 }, "ends inside its header"},
		"more keys than are":    {func(c *crafted) { c.claimKeys = c.nKeys + 1000; c.data = 0; c.tensors = nil }, "ends inside its header"},
		"long array":            {func(c *crafted) { c.array("a", 4, 1<<62) }, "ends inside its header"},
		"long string array":     {func(c *crafted) { c.array("a", 8, 1<<62) }, "ends inside its header"},
		"nested array":          {func(c *crafted) { c.array("a", 9, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }, "items of type 9"},
		"nested kept array":     {func(c *crafted) { c.array("x.attention.head_count", 9, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }, "items of type 9"},
		"long kept array":       {func(c *crafted) { c.array("x.attention.head_count", 0, 1<<17, make([]byte, 1<<17)...) }, "at most 65536"},
		"long string":           {func(c *crafted) { c.key("s", 8); c.keys = binary.LittleEndian.AppendUint64(c.keys, 1<<63) }, "ends inside its header"},
		"unknown value type":    {func(c *crafted) { c.key("k", 77) }, "unknown value type 77"},
		"claimed split size":    {func(c *crafted) { c.u32("split.tensors.count", 1<<31) }, "split.tensors.count"},
		"zero alignment":        {func(c *crafted) { c.u32("general.alignment", 0) }, "header is not valid"},
		"text alignment":        {func(c *crafted) { c.text("general.alignment", "32") }, "header is not valid"},
		"many layers":           {func(c *crafted) { c.u32("qwen3moe.block_count", 1<<30) }, "layers; at most"},
		"only MTP layers":       {func(c *crafted) { c.u32("qwen3moe.nextn_predict_layers", 2) }, "multi-token"},
		"uses more than it has": {func(c *crafted) { c.u32("qwen3moe.expert_used_count", 5) }, "5 of 4 experts"},
		"no dimensions":         {tensor(), "0 dimensions"},
		"five dimensions":       {tensor(1, 1, 1, 1, 1), "5 dimensions"},
		"empty dimension":       {tensor(0, 1), "dimension 0"},
		"overflow":              {func(c *crafted) { c.add("x", 0, 1<<40, 1<<40); c.data = 1 << 16 }, "overflow"},
		"unknown type":          {func(c *crafted) { c.tensors[1].kind = 250 }, "unknown type 250"},
		"removed type":          {func(c *crafted) { c.tensors[1].kind = 4 }, "unknown type 4"},
		"part of a block":       {func(c *crafted) { c.tensors[1].dims[0] = 48 }, "no whole number"},
		"far offset":            {func(c *crafted) { c.tensors[1].offset = math.MaxUint64 - 8; c.data = 1 << 16 }, "truncated"},
		"past the end":          {func(c *crafted) { c.tensors[8].offset += 1024; c.data = int(c.tensors[8].offset) - 1024 + 512 }, "truncated"},
		"twice":                 {func(c *crafted) { c.tensors[1].name = c.tensors[2].name }, "also in"},
		"truncated data":        {func(c *crafted) { c.data = 100 }, "truncated"},
		"version 1":             {func(c *crafted) { c.version = 1 }, "version 1"},
		"other byte order":      {func(c *crafted) { c.version = 3 << 24 }, "version 50331648"},
	} {
		t.Run(name, func(t *testing.T) {
			c := moe()
			tc.edit(c)
			path := c.write(t, "m.gguf")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Open(path)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want it to name the file and say %q", err, tc.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
				t.Errorf("allocated %d bytes", n)
			}
		})
	}
}

// Every proper prefix of a model is refused, and none makes the parser panic.
func TestEveryTruncation(t *testing.T) {
	whole := moe().bytes()
	path := filepath.Join(t.TempDir(), "m.gguf")
	for n := 0; n < len(whole); n += 1 + n/60 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(whole))
		} else if n >= 8 && !errors.Is(err, ErrTruncated) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func TestNotFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "text.gguf")
	if err := os.WriteFile(text, []byte("version https://git-lfs.github.com/spec/v1"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.gguf")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "directory", fifo: "regular file", text: "not a GGUF", empty: "not a GGUF", "/dev/null": "regular file",
		filepath.Join(dir, "none"): "no such file",
	} {
		done := make(chan error, 1)
		go func() { _, err := Open(path); done <- err }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: got %v, want %q", path, err, want)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: still opening", path)
		}
	}
	if _, err := Open(text); !errors.Is(err, ErrNotGGUF) {
		t.Errorf("a text file: %v", err)
	}
}

// Model hubs keep files elsewhere and link to them; shards are looked for
// beside the link.
func TestSymlinkedShards(t *testing.T) {
	paths := shards(t, nil)
	dir := t.TempDir()
	var links []string
	for i, p := range paths {
		blob := filepath.Join(filepath.Dir(p), string(rune('a'+i)))
		if err := os.Rename(p, blob); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, filepath.Base(p))
		if err := os.Symlink(blob, link); err != nil {
			t.Fatal(err)
		}
		links = append(links, link)
	}
	if m, err := Open(links[0]); err != nil || len(m.Shards) != 3 {
		t.Errorf("got %v and %v", m, err)
	}
}

func FuzzOpen(f *testing.F) {
	// Small seeds: the fuzzer shrinks what it finds, and that takes its time.
	c := newCrafted("llama")
	c.u32("llama.block_count", 1)
	c.u32("llama.expert_count", 2)
	c.add("blk.0.ffn_up_exps.weight", 2, 32, 1, 2)
	c.add("output.weight", 0, 2, 2)
	f.Add(c.bytes())
	c = newCrafted("deepseek2")
	c.u32("deepseek2.block_count", 2)
	c.u32("deepseek2.nextn_predict_layers", 1)
	c.array("deepseek2.attention.head_count_kv", 4, 2, 1, 0, 0, 0, 2, 0, 0, 0)
	c.u16("split.count", 2)
	c.add("blk.0.ffn_gate_up_exps.weight", 39, 32, 8, 4)
	f.Add(c.bytes())
	f.Add([]byte("GGUF"))
	path := filepath.Join(f.TempDir(), "m.gguf")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(path)
		if err != nil {
			return
		}
		for _, x := range m.byPosition() {
			if x.Offset < 0 || x.Bytes <= 0 || x.Offset+x.Bytes > m.Sizes[x.Shard] {
				t.Errorf("%s at %d, %d bytes, lies outside its file of %d", x.Name, x.Offset, x.Bytes, m.Sizes[x.Shard])
			}
		}
		if _, err := m.Hash(); err != nil {
			t.Errorf("hash: %v", err)
		}
	})
}
