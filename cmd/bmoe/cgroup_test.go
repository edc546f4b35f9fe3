package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// memoryGroup is a control group with a memory limit, for children of a test.
type memoryGroup struct{ dir string }

// limitMemory makes a group, or skips the test where that is not allowed.
func limitMemory(tb testing.TB, bytes int64) *memoryGroup {
	tb.Helper()
	root, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(root, file)); err != nil {
		root, file = "/sys/fs/cgroup", "memory.max"
	}
	g := &memoryGroup{filepath.Join(root, fmt.Sprintf("bmoe-test-%d", os.Getpid()))}
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		tb.Skipf("no right to make a control group: %v", err)
	}
	tb.Cleanup(func() { _ = os.Remove(g.dir) })
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.FormatInt(bytes, 10)), 0o600); err != nil {
		tb.Skipf("no right to limit memory: %v", err)
	}
	return g
}

// command runs a program inside the group; a nil group limits nothing.
func (g *memoryGroup) command(name string, args ...string) *exec.Cmd {
	if g == nil {
		return exec.Command(name, args...)
	}
	script := `echo $$ > "$0" && exec "$@"`
	full := append([]string{"-c", script, filepath.Join(g.dir, "cgroup.procs"), name}, args...)
	return exec.Command("/bin/sh", full...)
}

// program is a program in bin/ of this checkout.
func program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("no %s: `make build peers` makes it", path)
	}
	return path
}

// output runs cmd and returns its standard output; a failure shows its errors.
func output(tb testing.TB, cmd *exec.Cmd) []byte {
	tb.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, tail(stderr.String(), 2000))
	}
	return out
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
