// Package llama is the binding to llama.cpp and ggml: the only package of bmoe
// that uses cgo. It is thin on purpose: it loads, binds, decodes and samples,
// and decides nothing. C holds numeric handles, never Go pointers, and no Go
// panic crosses into C.
package llama

/*
#cgo CFLAGS: -std=gnu11 -O2 -I${SRCDIR}/include
#cgo CXXFLAGS: -std=c++17 -O2 -I${SRCDIR}/include
#cgo linux LDFLAGS: -Wl,-rpath,$ORIGIN/../lib -ldl -lpthread
#cgo darwin LDFLAGS: -Wl,-rpath,@executable_path/../lib
#include <stdlib.h>
#include "bridge.h"
#include "dynlink.h"
#include "device.h"
#include "fault.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"
)

// Release is the llama.cpp release the binding is written for.
const Release = "v0.4.0"

var initOnce = sync.OnceValue(load)

//go:generate setup/symbols.sh

// Init loads the CPU backend modules that lie beside the program and nowhere
// else. It may be called often.
func Init() error { return initOnce() }

func load() error {
	if p := C.bm_dynlink_problem(); p != nil {
		return fmt.Errorf("llama.cpp's libraries cannot be loaded: %s: they belong in lib/ beside bin/; run `make build`, or unpack the release again", C.GoString(p))
	}
	C.bm_fault_install()
	dir, err := LibDir()
	if err != nil {
		return err
	}
	cdir := C.CString(dir)
	defer C.free(unsafe.Pointer(cdir))
	_ = os.Unsetenv("GGML_BACKEND_PATH") // modules come from that folder and from nowhere else
	linkedBackends = int(C.bm_backend_count())
	C.bm_backends_load(cdir)
	if C.ggml_backend_dev_by_type(C.GGML_BACKEND_DEVICE_TYPE_CPU) == nil {
		return fmt.Errorf("no CPU backend module in %s: run `make build` again, or put the libggml-cpu-*.so files of llama.cpp %s there", dir, Release)
	}
	return nil
}

// LibDir is where llama.cpp's libraries and backend modules are looked for:
// ../lib beside the program, or, for test binaries, the checkout's own lib.
func LibDir() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the program's own folder: %w", err)
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", fmt.Errorf("finding the program's own folder: %w", err)
	}
	dir := filepath.Join(filepath.Dir(exe), "..", "lib")
	if hasModules(dir) {
		return filepath.Clean(dir), nil
	}
	if dir := loadedFrom(); dir != "" && hasModules(dir) {
		return dir, nil
	}
	return "", fmt.Errorf("no libggml-cpu-* modules in %s: llama.cpp's libraries belong in lib/ beside bin/; run `make build`", filepath.Clean(dir))
}

func hasModules(dir string) bool {
	m, err := filepath.Glob(filepath.Join(dir, "libggml-cpu*"))
	return err == nil && len(m) > 0
}

// loadedFrom is the folder the dynamic linker took libggml-base from.
func loadedFrom() string {
	raw, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if _, path, ok := strings.Cut(line, " /"); ok && strings.Contains(path, "libggml-base") {
			return filepath.Dir("/" + strings.TrimSpace(path))
		}
	}
	return ""
}

// Verbose prints llama.cpp's own log to standard error.
func Verbose(on bool) { C.bm_log_verbose(C.bool(on)) }

// lastError returns what llama.cpp logged as errors since the last call, as an
// error, or one that says what was attempted.
func lastError(doing string) error {
	var buf [1024]C.char
	C.bm_last_error(&buf[0], C.size_t(len(buf)))
	text := strings.TrimSpace(C.GoString(&buf[0]))
	if text == "" {
		return errors.New("llama.cpp gave up " + doing + " without saying why")
	}
	lines := strings.Split(text, "\n")
	return fmt.Errorf("llama.cpp, %s: %s", doing, strings.TrimSpace(lines[0]))
}

// CPUModule names the CPU backend module ggml chose for this machine.
func CPUModule() string {
	raw, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if i := strings.Index(line, "libggml-cpu-"); i >= 0 {
			name := strings.TrimSpace(line[i+len("libggml-cpu-"):])
			return strings.TrimSuffix(name, filepath.Ext(name))
		}
	}
	return ""
}
