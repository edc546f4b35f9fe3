package gguf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustHash(t *testing.T, path string) string {
	t.Helper()
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHashFollowsContentNotPath(t *testing.T) {
	b := moe().bytes()
	write := func(name string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return mustHash(t, path)
	}
	first := write("a.gguf", b)
	if other := write("b.gguf", b); other != first {
		t.Errorf("the same bytes under another name hash to %s, not %s", other, first)
	}
	// Every byte of these small tensors is sampled: changing any changes it.
	for _, at := range []int{len(b) - 1, len(b) / 2} {
		b[at] ^= 1
		if write("c.gguf", b) == first {
			t.Errorf("changing byte %d of %d changed nothing", at, len(b))
		}
		b[at] ^= 1
	}
	c := moe()
	c.text("general.name", "other")
	if write("d.gguf", c.bytes()) == first {
		t.Error("another header hashes the same")
	}
}

func TestHashNoticesReplacedFile(t *testing.T) {
	path := moe().write(t, "m.gguf")
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(moe().bytes(), 0), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Hash(); err == nil || !strings.Contains(err.Error(), "size changed") {
		t.Errorf("got %v", err)
	}
}
