//go:build torture && linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fullDisk runs with a ledger on a file system that fills up.
func (r *rack) fullDisk(n int) *outcome {
	o := &outcome{what: "run, the ledger's disk full", survives: "it says so with the path and exit 1 or 5; the ledger is sound once there is room"}
	small := filepath.Join(r.dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=2m"); err != nil {
		r.t.Logf("a small file system cannot be mounted: %v", err)
		return o
	}
	defer func() { _ = unix.Unmount(small, 0) }()
	kept, stored := r.db, r.storedSoFar
	r.db, r.storedSoFar = filepath.Join(small, "r.db"), 0
	defer func() { r.db, r.storedSoFar = kept, stored }()
	r.must(r.runArgs()...)
	for range n {
		ballast := filepath.Join(small, "ballast")
		fill(ballast, r.rng.IntN(64<<10))
		code, log := r.do(r.runArgs()...)
		_ = os.Remove(ballast)
		err := r.check()
		if err == nil && code != exitOK && (code != exitFailure && code != exitData || !strings.Contains(log, r.db)) {
			err = fmt.Errorf("exit %d: %s", code, log)
		}
		o.count(r.t, err)
	}
	return o
}

// fill writes a file until the file system is full but for spare bytes.
func fill(path string, spare int) {
	f, err := os.Create(path)
	if err != nil {
		return
	}
	defer f.Close()
	block := make([]byte, 4096)
	size := 0
	for {
		n, err := f.Write(block)
		size += n
		if err != nil {
			_ = f.Truncate(int64(max(0, size-spare)))
			return
		}
	}
}

// modelDeleted unlinks or cuts the model while a run reads it.
func (r *rack) modelDeleted(n int) *outcome {
	o := &outcome{what: "run, its model deleted or cut short meanwhile", survives: "it finishes, or says so and ends with exit 1 (2 when it had not begun)"}
	kept := r.model
	defer func() { r.model = kept }()
	raw, err := os.ReadFile(kept)
	if err != nil {
		r.t.Fatal(err)
	}
	most := r.span(r.runArgs()...)
	for i := range n {
		r.model = filepath.Join(r.dir, "doomed.gguf")
		if err := os.WriteFile(r.model, raw, 0o600); err != nil {
			r.t.Fatal(err)
		}
		cmd, log := r.start(r.runArgs()...)
		time.Sleep(time.Duration(r.rng.Int64N(int64(most))))
		if i%2 == 0 {
			_ = os.Remove(r.model)
		} else {
			_ = os.Truncate(r.model, int64(len(raw)/2))
		}
		_ = cmd.Wait()
		err := r.check()
		if code := cmd.ProcessState.ExitCode(); err == nil && (code != exitOK && code != exitFailure && code != exitUsage || strings.Contains(log.String(), "goroutine ")) {
			err = fmt.Errorf("exit %d (%v): %s", code, cmd.ProcessState, log)
		}
		o.count(r.t, err)
		_ = os.Remove(r.model)
	}
	return o
}

// tightened lowers the memory limit under a run.
func (r *rack) tightened(n int) *outcome {
	o := &outcome{what: "run, its memory limit lowered meanwhile", survives: "it finishes or is ended by the kernel; the ledger is sound"}
	const top = "/sys/fs/cgroup/memory"
	most := r.span(r.runArgs()...)
	for i := range n {
		group := filepath.Join(top, "bmoe-torture-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(i))
		if err := os.Mkdir(group, 0o755); err != nil {
			r.t.Logf("no control group can be made: %v", err)
			return o
		}
		set := func(file, value string) error {
			return os.WriteFile(filepath.Join(group, file), []byte(value), 0o600)
		}
		cmd, _ := r.start(r.runArgs()...)
		err := set("cgroup.procs", strconv.Itoa(cmd.Process.Pid))
		time.Sleep(time.Duration(r.rng.Int64N(int64(most))))
		// The kernel refuses a limit it cannot reach; a lower one is tried.
		_ = set("memory.limit_in_bytes", strconv.Itoa(40<<20))
		_ = cmd.Wait()
		_ = os.Remove(group)
		if err == nil || cmd.ProcessState != nil {
			err = r.check()
		}
		o.count(r.t, err)
	}
	return o
}

// together runs three programs on one ledger at once.
func (r *rack) together(n int) *outcome {
	o := &outcome{what: "three runs at once on one ledger", survives: "all three are stored"}
	for range n {
		before, err := r.stored()
		var waits []func() error
		for i := range 3 {
			cmd, _ := r.start(append(r.runArgs(), "--seed", strconv.Itoa(i))...)
			waits = append(waits, cmd.Wait)
		}
		for _, wait := range waits {
			if e := wait(); err == nil {
				err = e
			}
		}
		if err == nil {
			err = r.check()
		}
		if err == nil && r.storedSoFar != before+3 {
			err = fmt.Errorf("%d runs are stored, %d were before", r.storedSoFar, before)
		}
		o.count(r.t, err)
	}
	return o
}
