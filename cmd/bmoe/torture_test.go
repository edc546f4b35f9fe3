//go:build torture && linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const allParts = "kills,starve,runs,clock,sweeps"

var (
	tortureKills  = flag.Int("kills", 500, "signals sent in all")
	tortureFaults = flag.Int("faults", 12, "times each other fault is tried; half as often where it disturbs sweeps or the clock")
	tortureParts  = flag.String("parts", allParts, "what is done; the table keeps its rows of the other parts")
	tortureSeed   = flag.Uint64("torture-seed", 1, "seed of the moments and signals")
	tortureOut    = flag.String("table", "", "markdown file whose generated region is rewritten")
)

// outcome counts one row of the table.
type outcome struct {
	what, survives  string
	tried, survived int
}

// TestTorture kills and starves the built program and checks its ledger after
// each blow. `make torture` runs it.
func TestTorture(t *testing.T) {
	n, half := *tortureFaults, *tortureFaults/2
	parts := map[string]func() []*outcome{
		"kills":  func() []*outcome { return killed(t, *tortureKills) },
		"starve": func() []*outcome { return starved(newRack(t, *tortureSeed+10), n) },
		"runs":   func() []*outcome { return newRack(t, *tortureSeed+11).faultyRuns(n) },
		"clock":  func() []*outcome { return newRack(t, *tortureSeed+12).clockBack(half) },
		"sweeps": func() []*outcome { return newRack(t, *tortureSeed+13).faultySweeps(half) },
	}
	var all []*outcome
	write := func(rows []*outcome, keep bool) {
		if *tortureOut == "" {
			return
		}
		if err := writeTable(filepath.Join("..", "..", *tortureOut), rows, keep); err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.SplitSeq(*tortureParts, ",") {
		part, ok := parts[name]
		if !ok {
			t.Fatalf("-parts %q: there is no part %q", *tortureParts, name)
		}
		began, rows := time.Now(), part()
		for _, o := range rows {
			t.Logf("%s: %d of %d", o.what, o.survived, o.tried)
			if o.survived != o.tried {
				t.Errorf("%s: %d of %d survived", o.what, o.survived, o.tried)
			}
		}
		t.Logf("%s took %v", name, time.Since(began).Round(time.Second))
		write(rows, true) // what was done stays, should a later part not end
		all = append(all, rows...)
	}
	if *tortureParts == allParts {
		write(all, false)
	}
}

func killed(t *testing.T, n int) (rows []*outcome) {
	third := (n + 2) / 3
	for i, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		r := newRack(t, *tortureSeed+uint64(i))
		rows = append(rows, r.killSweeps(sig, third/3), r.killRuns(sig, third-third/3))
	}
	return rows
}

func starved(r *rack, n int) (rows []*outcome) {
	for _, fault := range []func(int) *outcome{r.fullDisk, r.modelDeleted, r.tightened, r.together} {
		rows = append(rows, fault(n))
	}
	return rows
}

func (o *outcome) count(t *testing.T, err error) {
	o.tried++
	if err != nil {
		t.Errorf("%s, number %d: %v", o.what, o.tried, err)
		return
	}
	o.survived++
}

// blow starts the program, sends sig after a random moment and waits for it.
func (r *rack) blow(sig syscall.Signal, most time.Duration, args ...string) (int, string) {
	cmd, log := r.start(args...)
	end := ended(cmd)
	if sig != syscall.SIGKILL {
		r.awake(cmd, end)
	}
	select {
	case <-end:
	case <-time.After(time.Duration(r.rng.Int64N(int64(most)))):
		_ = cmd.Process.Signal(sig)
	}
	code, err := within(30*time.Second, cmd, end)
	if err != nil {
		return -1, fmt.Sprintf("after %v: %v", sig, err)
	}
	return code, log.String()
}

// awake waits until the program has opened one of its files: from then on it
// answers signals itself. Only what cannot be caught may fall earlier.
func (r *rack) awake(cmd *exec.Cmd, end <-chan struct{}) {
	for range 30 * time.Second / tick {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid))
		for _, link := range links {
			if path, _ := os.Readlink(link); strings.HasPrefix(path, r.dir+"/") {
				return
			}
		}
		select {
		case <-end:
			return
		case <-time.After(tick / 4):
		}
	}
}

// span is how long one undisturbed command takes here.
func (r *rack) span(args ...string) time.Duration {
	began := time.Now()
	r.must(args...)
	return time.Since(began)
}

func (r *rack) runArgs() []string {
	return []string{"run", "-m", r.model, "--moe-stream", "--cache-mb", "2", "-p", "once", "-n", "16", "-c", "512", "--ignore-eos", "--random-tokens", "1", "-t", "1"}
}

func (r *rack) sweepArgs() []string {
	args := append(r.runArgs(), "--lever", "io-threads", "--values", "1,2", "--pairs", "6", "--warmup", "0", "--entry-wait", "0")
	args[0] = "sweep"
	return args
}

func (r *rack) killRuns(sig syscall.Signal, n int) *outcome {
	o := &outcome{what: "run, " + signalName(sig), survives: "the ledger is sound, stored runs stay, no child, no temporary file"}
	most := r.span(r.runArgs()...)
	for range n {
		code, log := r.blow(sig, most, r.runArgs()...)
		err := r.check()
		if err == nil && code == -1 && sig != syscall.SIGKILL {
			err = fmt.Errorf("it was ended by the signal, not by itself: %s", log)
		}
		if left := r.leftovers(); err == nil && len(left) > 0 {
			err = fmt.Errorf("left behind: %v", left)
		}
		o.count(r.t, err)
	}
	return o
}

func (r *rack) killSweeps(sig syscall.Signal, n int) *outcome {
	o := &outcome{what: "sweep, " + signalName(sig), survives: "as a run, and the sweep goes on where it stopped"}
	start := r.sweepArgs()
	most := r.span(r.runArgs()...) * 5 / 2
	args := start
	for range n {
		code, log := r.blow(sig, most, args...)
		err := r.check()
		if err == nil && code != exitOK && code != exitInterrupted && sig != syscall.SIGKILL {
			err = fmt.Errorf("exit %d: %s", code, log)
		}
		if left := r.leftovers(); err == nil && len(left) > 0 {
			err = fmt.Errorf("left behind: %v", left)
		}
		o.count(r.t, err)
		// What was stopped is resumed; what is finished is asked anew.
		args = []string{"sweep", "--resume", "--entry-wait", "0"}
		if r.finished() {
			seed := fmt.Sprint(r.rng.IntN(1 << 30))
			args = append(append([]string{}, start...), "--order-seed", seed)
		}
	}
	if !r.finished() {
		r.must("sweep", "--resume", "--entry-wait", "0")
	}
	return o
}

// finished says that no experiment waits to be resumed.
func (r *rack) finished() bool {
	if _, err := os.Stat(r.db); err != nil {
		return true
	}
	_, log := r.ask("experiments", "list")
	return !strings.Contains(log, "left")
}

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGKILL:
		return "SIGKILL"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return "SIGINT"
}
