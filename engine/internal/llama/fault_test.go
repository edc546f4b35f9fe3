package llama

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// touchTruncated reads a mapping whose file is gone from under it.
func touchTruncated() {
	f, err := os.Create(filepath.Join(os.Getenv("BMOE_TEST_DIR"), "weights"))
	if err != nil {
		panic(err)
	}
	if err := f.Truncate(1 << 20); err != nil {
		panic(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, 1<<20, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	if err := f.Truncate(0); err != nil {
		panic(err)
	}
	os.Exit(10 + int(m[1<<19]))
}

// A model cut short while it is mapped ends the program with a sentence and an
// exit code, not with the registers of a crash.
func TestTruncatedMappingIsSaid(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "BMOE_TEST_INIT=truncate", "BMOE_TEST_DIR="+t.TempDir())
	var errs bytes.Buffer
	cmd.Stderr = &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v, want exit code 1", err)
	}
	if !bytes.Contains(errs.Bytes(), []byte("cut short")) || bytes.Contains(errs.Bytes(), []byte("goroutine")) {
		t.Errorf("it said:\n%s", errs.Bytes())
	}
}
