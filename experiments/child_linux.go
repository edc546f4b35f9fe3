package experiments

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownGroup also makes the child die with us: a sweep that is killed must not
// leave a run behind that the resumed sweep would then compete with.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// confine puts the child first in line when memory runs out, so that the
// kernel ends the run and not the sweep, and into a memory group of its own
// when a limit is asked for. release removes the group.
func confine(pid, memoryMB int) (release func(), err error) {
	// Best effort: without it the kernel still picks the largest process.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("900"), 0o644)
	if memoryMB <= 0 {
		return func() {}, nil
	}
	dir, limitFile := memoryGroup(pid)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("--run-memory-mb %d: make a memory group: %w", memoryMB, err)
	}
	release = func() { removeGroup(dir) }
	for _, w := range []struct{ file, text string }{
		{limitFile, strconv.FormatInt(int64(memoryMB)<<20, 10)},
		{"cgroup.procs", strconv.Itoa(pid)},
	} {
		if err := os.WriteFile(filepath.Join(dir, w.file), []byte(w.text), 0o644); err != nil {
			release()
			return nil, fmt.Errorf("--run-memory-mb %d: %w", memoryMB, err)
		}
	}
	return release, nil
}

// memoryGroup names a group below our own, in whichever hierarchy has the
// memory controller.
func memoryGroup(pid int) (dir, limitFile string) {
	name := fmt.Sprintf("bmoe-run-%d", pid)
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err == nil {
		for line := range strings.Lines(string(groups)) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(f) == 3 && strings.Contains(","+f[1]+",", ",memory,") {
				return filepath.Join("/sys/fs/cgroup/memory", f[2], name), "memory.limit_in_bytes"
			}
		}
		for line := range strings.Lines(string(groups)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				return filepath.Join("/sys/fs/cgroup", path, name), "memory.max"
			}
		}
	}
	return filepath.Join("/sys/fs/cgroup/memory", name), "memory.limit_in_bytes"
}

// removeGroup waits a moment for the last pages to be uncharged.
func removeGroup(dir string) {
	for range 20 {
		if os.Remove(dir) == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// oomKills counts the processes the kernel has ended for want of memory since
// it was started.
func oomKills() int64 {
	stat, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(stat)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			v, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return v
		}
	}
	return 0
}
