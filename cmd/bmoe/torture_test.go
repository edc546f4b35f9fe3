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

var (
	tortureKills  = flag.Int("kills", 500, "signals sent in all")
	tortureFaults = flag.Int("faults", 12, "times each other fault is tried; a quarter as often where it disturbs sweeps")
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
	var rows []*outcome
	add := func(done ...*outcome) {
		for _, o := range done {
			t.Logf("%s: %d of %d", o.what, o.survived, o.tried)
			if o.survived != o.tried {
				t.Errorf("%s: %d of %d survived", o.what, o.survived, o.tried)
			}
		}
		rows = append(rows, done...)
	}
	third := (*tortureKills + 2) / 3
	for i, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		r := newRack(t, *tortureSeed+uint64(i))
		add(r.killSweeps(sig, third/3))
		add(r.killRuns(sig, third-third/3))
	}
	r, n := newRack(t, *tortureSeed+10), *tortureFaults
	for _, fault := range []func(int) *outcome{r.fullDisk, r.modelDeleted, r.tightened, r.together} {
		add(fault(n))
	}
	add(r.faultyRuns(n)...)
	add(r.clockBack(n / 2)...)
	add(r.faultySweeps(n / 2)...)
	if *tortureOut != "" {
		if err := writeTable(*tortureOut, rows); err != nil {
			t.Fatal(err)
		}
	}
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

// writeTable rewrites the region of the table in a document.
func writeTable(path string, rows []*outcome) error {
	const begin, end = "<!-- torture:begin -->\n", "<!-- torture:end -->"
	raw, err := os.ReadFile(filepath.Join("..", "..", path))
	if err != nil {
		return err
	}
	head, rest, ok1 := strings.Cut(string(raw), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no region %s", path, strings.TrimSpace(begin))
	}
	var b strings.Builder
	b.WriteString(head + begin + "| what was done | survived means | tried | survived |\n|---|---|---:|---:|\n")
	for _, o := range rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %d |\n", o.what, o.survives, o.tried, o.survived)
	}
	b.WriteString(end + tail)
	return os.WriteFile(filepath.Join("..", "..", path), []byte(b.String()), 0o644)
}
