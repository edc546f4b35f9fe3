//go:build torture && linux

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mode is what befalls the file operation that was chosen.
type mode struct {
	name  string
	errno syscall.Errno
	wait  time.Duration
	on    bool // and all after it
	write bool // writes and syncs only
}

var modes = []mode{
	{name: "one I/O error", errno: syscall.EIO},
	{name: "I/O errors from some moment on", errno: syscall.EIO, on: true},
	{name: "no space from some moment on", errno: syscall.ENOSPC, on: true, write: true},
	{name: "one operation hangs for a second", wait: time.Second},
	{name: "every operation slow from some moment on", wait: 2 * time.Millisecond, on: true},
}

func (m mode) hits(call int32) bool {
	return !m.write || call != unix.SYS_READ && call != unix.SYS_PREAD64
}

// at makes the fault that falls on operation number n of those it may hit.
func (m mode) at(n int64, seen *atomic.Int64) *fault {
	return &fault{decide: func(call int32, _ string) (time.Duration, syscall.Errno) {
		if !m.hits(call) {
			return 0, 0
		}
		if i := seen.Add(1) - 1; i == n || i > n && m.on {
			return m.wait, m.errno
		}
		return 0, 0
	}}
}

// finish waits for a program that may not hang.
func finish(cmd *exec.Cmd, patience time.Duration) (int, error) {
	return within(patience, cmd, ended(cmd))
}

// endedPlainly says whether the program ended by itself and said what was wrong.
func endedPlainly(code int, log string) error {
	switch {
	case strings.Contains(log, "goroutine "):
		return fmt.Errorf("exit %d with a dump: %s", code, log)
	case code == exitOK:
		return nil
	case code != exitFailure && code != exitUsage && code != exitData || !strings.Contains(log, "bmoe:"):
		return fmt.Errorf("exit %d: %s", code, log)
	}
	return nil
}

// reach counts the file operations of one undisturbed command: how many each
// mode may hit.
func (r *rack) reach(args []string) func(mode) int64 {
	var all, writes int64
	count := func(call int32, _ string) (time.Duration, syscall.Errno) {
		all++
		if (mode{write: true}).hits(call) {
			writes++
		}
		return 0, 0
	}
	cmd, log := r.startFaulty(&fault{decide: count}, args...)
	if code, err := finish(cmd, 2*time.Minute); err != nil || code != exitOK {
		r.t.Fatalf("undisturbed behind the filter: exit %d, %v\n%s", code, err, log)
	}
	return func(m mode) int64 {
		if m.write {
			return writes
		}
		return all
	}
}

// faultyRuns disturbs the file operations of runs, n times for each mode.
func (r *rack) faultyRuns(n int) []*outcome {
	var rows []*outcome
	reach := r.reach(r.runArgs())
	for _, m := range modes {
		o := &outcome{what: "run, " + m.name, survives: "stored, or ended with a sentence; the ledger is sound"}
		most := reach(m)
		for range n {
			before, err := r.stored()
			if err != nil {
				r.t.Fatal(err)
			}
			at := r.rng.Int64N(most)
			var seen atomic.Int64
			cmd, log := r.startFaulty(m.at(at, &seen), r.runArgs()...)
			code, err := finish(cmd, 2*time.Minute)
			if err == nil {
				err = endedPlainly(code, log.String())
			}
			if err == nil {
				err = r.check()
			}
			if err == nil && code == exitOK && r.storedSoFar != before+1 {
				err = fmt.Errorf("exit 0, but %d runs are stored after %d: %s", r.storedSoFar, before, log)
			}
			o.count(r.t, where(err, at, most))
		}
		rows = append(rows, o)
	}
	return rows
}

// faultySweeps does the same to sweeps, which then are resumed.
func (r *rack) faultySweeps(n int) []*outcome {
	var rows []*outcome
	reach := r.reach(r.sweepArgs())
	for _, m := range modes {
		o := &outcome{what: "sweep, " + m.name, survives: "as a run, and the sweep goes on where it stopped"}
		most := reach(m)
		for range n {
			at := r.rng.Int64N(most)
			var seen atomic.Int64
			cmd, log := r.startFaulty(m.at(at, &seen), append(r.sweepArgs(), "--order-seed", fmt.Sprint(r.rng.IntN(1<<30)))...)
			code, err := finish(cmd, 4*time.Minute)
			if err == nil {
				err = endedPlainly(code, log.String())
			}
			if err == nil {
				err = r.check()
			}
			if err == nil && !r.finished() {
				if code, log := r.do("sweep", "--resume", "--entry-wait", "0"); code != exitOK {
					err = fmt.Errorf("resumed: exit %d: %s", code, log)
				}
			}
			o.count(r.t, where(err, at, most))
		}
		rows = append(rows, o)
	}
	return rows
}

func where(err error, at, most int64) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("operation %d of %d: %w", at, most, err)
}

// clockBack sets the program's time of day back by an hour in its middle.
func (r *rack) clockBack(n int) []*outcome {
	var rows []*outcome
	for _, args := range [][]string{r.runArgs(), r.sweepArgs()} {
		o := &outcome{what: args[0] + ", the clock set back an hour meanwhile", survives: "it finishes and is stored; the ledger is sound"}
		most := r.span(args...)
		for range n {
			before, err := r.stored()
			if err != nil {
				r.t.Fatal(err)
			}
			jump := time.Now().Add(time.Duration(r.rng.Int64N(int64(most))))
			var asked atomic.Int64
			cmd, log := r.startFaulty(&fault{shift: func() time.Duration {
				asked.Add(1)
				if time.Now().Before(jump) {
					return 0
				}
				return -time.Hour
			}}, args...)
			code, err := finish(cmd, 4*time.Minute)
			if err == nil && (code != exitOK || asked.Load() == 0) {
				err = fmt.Errorf("exit %d, the clock was read %d times: %s", code, asked.Load(), log)
			}
			if err == nil {
				err = r.check()
			}
			if err == nil && r.storedSoFar <= before {
				err = fmt.Errorf("%d runs are stored, %d were before", r.storedSoFar, before)
			}
			o.count(r.t, err)
		}
		rows = append(rows, o)
	}
	return rows
}
