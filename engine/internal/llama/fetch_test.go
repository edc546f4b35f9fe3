package llama

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fetchRack is a copy of the set-up scripts that pins two small archives of the
// test's own, and an npm that hands them out.
type fetchRack struct {
	t              *testing.T
	dir            string
	sources, built []byte // the archives
}

const (
	sourcesName = "node-llama-cpp"
	builtName   = "@node-llama-cpp/test"
)

func newFetchRack(t *testing.T) *fetchRack {
	t.Helper()
	for _, tool := range []string{"bash", "git", "openssl", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v: make setup installs it", err)
		}
	}
	r := &fetchRack{t: t, dir: t.TempDir()}
	r.built = archive(t, map[string]string{"package/LICENSE": "MIT", "package/bins/test/libllama.so": "a library"})
	r.sources = archive(t, map[string]string{"package/llama/gitRelease.bundle": r.bundle(), "package/llama/patches/one.diff": "a patch"})
	r.copyScripts()
	r.write("bin/npm", "#!/bin/sh\ncase \"$*\" in\n*@node-llama-cpp/*) cp '"+r.path("built.tgz")+"' . ;;\n*) cp '"+r.path("sources.tgz")+"' . ;;\nesac\n")
	return r
}

func (r *fetchRack) path(name string) string { return filepath.Join(r.dir, name) }

func (r *fetchRack) write(name, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// bundle is a git bundle of a source tree with the headers that are looked for.
func (r *fetchRack) bundle() string {
	r.t.Helper()
	for _, name := range []string{"include/llama.h", "ggml/include/ggml.h", "ggml/src/ggml-backend-impl.h", "ggml/src/ggml-impl.h", "common/fit.h", "src/llama-ext.h"} {
		r.write("tree/"+name, "// "+name+"\n")
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "all"}, {"bundle", "create", "-q", r.path("bundle"), "--all", "HEAD"},
	} {
		cmd := exec.Command("git", append([]string{"-C", r.path("tree")}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			r.t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	raw, err := os.ReadFile(r.path("bundle"))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(raw)
}

// copyScripts copies the scripts as they are, but for the pins.
func (r *fetchRack) copyScripts() {
	r.t.Helper()
	for _, name := range []string{"common.sh", "deps.sh", "fetch.sh"} {
		raw, err := os.ReadFile(filepath.Join("setup", name))
		if err != nil {
			r.t.Fatal(err)
		}
		r.write("engine/internal/llama/setup/"+name, string(raw))
	}
	r.write("engine/internal/llama/setup/pins.sh", "LLAMA_RELEASE=v0\nLLAMA_PACKAGES=0.0.0\nSOURCE_PACKAGE="+sourcesName+
		"\nvariant_for() { echo test; }\nintegrity_of() {\n\tcase $1 in\n\t"+sourcesName+") echo '"+integrity(r.sources)+"' ;;\n\t"+builtName+") echo '"+integrity(r.built)+"' ;;\n\tesac\n}\n")
}

// fetch runs the script with an empty cache.
func (r *fetchRack) fetch(sources, built []byte) (cache string, log string, err error) {
	r.t.Helper()
	r.write("sources.tgz", string(sources))
	r.write("built.tgz", string(built))
	cache = filepath.Join(r.t.TempDir(), "cache")
	cmd := exec.Command("bash", r.path("engine/internal/llama/setup/fetch.sh"))
	cmd.Env = append(os.Environ(), "PATH="+r.path("bin")+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+cache, "LLAMA_VARIANT=test")
	out, err := cmd.CombinedOutput()
	return filepath.Join(cache, "bmoe", "llama.cpp-v0-test"), string(out), err
}

func integrity(raw []byte) string {
	sum := sha512.Sum512(raw)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.NoCompression) // so that a changed byte is still a gzip file
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(zip)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is fetched is installed only when it is, byte for byte, what is pinned.
func TestFetchedArchivesAreVerified(t *testing.T) {
	r := newFetchRack(t)
	cache, log, err := r.fetch(r.sources, r.built)
	if err != nil {
		t.Fatalf("the pinned archives: %v: %s", err, log)
	}
	for _, file := range []string{"lib/libllama.so", "lib/LICENSE", "src/include/llama.h", "src/.bmoe-patches/one.diff", "include/ggml-impl.h"} {
		if _, err := os.Stat(filepath.Join(cache, file)); err != nil {
			t.Error(err)
		}
	}
	changed := func(raw []byte) []byte {
		out := bytes.Clone(raw)
		out[9] ^= 1 // the gzip header's note of the operating system: it unpacks all the same
		return out
	}
	for _, c := range []struct {
		name, part     string
		sources, built []byte
	}{
		{builtName, "lib", r.sources, changed(r.built)},
		{sourcesName, "src", changed(r.sources), r.built},
	} {
		cache, log, err := r.fetch(c.sources, c.built)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !strings.Contains(log, c.name+"@0.0.0 does not have the pinned checksum") {
			t.Errorf("%s with one changed byte: %v: %s", c.name, err, log)
		}
		if _, err := os.Stat(filepath.Join(cache, c.part)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s with one changed byte was installed: %v", c.name, err)
		}
	}
}
