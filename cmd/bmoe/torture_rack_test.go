//go:build torture && linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rack is what is tortured: the built program, a small model, a ledger.
type rack struct {
	t           *testing.T
	dir         string // holds everything below; temp is TMPDIR
	program     string
	model, db   string
	temp        string
	rng         *rand.Rand
	storedSoFar int
}

func newRack(t *testing.T, seed uint64) *rack {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("..", "..", "bin", "bmoe"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: run make build", err)
	}
	// Orphans come to this process, so that they can be counted.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := &rack{
		t: t, dir: dir, program: program, model: filepath.Join(dir, "m.gguf"), db: filepath.Join(dir, "r.db"),
		temp: filepath.Join(dir, "tmp"), rng: rand.New(rand.NewPCG(seed, 1)),
	}
	if err := os.Mkdir(r.temp, 0o700); err != nil {
		t.Fatal(err)
	}
	r.must("synth", "-o", r.model, "--layers", "4", "--experts", "16", "--experts-used", "4", "--embd", "256", "--ff", "256", "--vocab", "1024")
	return r
}

// start starts the program with args, its output going to log.
func (r *rack) start(args ...string) (*exec.Cmd, *strings.Builder) {
	r.t.Helper()
	var log strings.Builder
	cmd := exec.Command(r.program, append(args, "--db", r.db)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+r.temp)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	return cmd, &log
}

// do runs the program to its end and returns the exit code.
func (r *rack) do(args ...string) (int, string) {
	r.t.Helper()
	cmd, log := r.start(args...)
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), log.String()
}

// ask runs a command of the ledger in this process, which starts none.
func (r *rack) ask(args ...string) (int, string) {
	var log strings.Builder
	code := Run(r.t.Context(), append(args, "--db", r.db), strings.NewReader(""), &log, &log)
	return code, log.String()
}

func (r *rack) must(args ...string) string {
	r.t.Helper()
	code, log := r.do(args...)
	if code != exitOK {
		r.t.Fatalf("bmoe %s: exit %d\n%s", strings.Join(args, " "), code, log)
	}
	return log
}

// children are the processes whose parent is this one.
func children() []int {
	var out []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(rest)
		if len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(os.Getpid()) {
			out = append(out, pid)
		}
	}
	return out
}

// tick is a step of waiting. Steps are counted, not the clock read: a machine
// that halts the whole torture for a while has not made anything hang.
const tick = 20 * time.Millisecond

// ended is closed when the program has ended.
func ended(cmd *exec.Cmd) <-chan struct{} {
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	return done
}

// within waits that long for the program's end and then kills it.
func within(patience time.Duration, cmd *exec.Cmd, end <-chan struct{}) (int, error) {
	for range patience / tick {
		select {
		case <-end:
			return cmd.ProcessState.ExitCode(), nil
		case <-time.After(tick):
		}
	}
	_ = cmd.Process.Kill()
	<-end
	return -1, fmt.Errorf("it did not end within %v", patience)
}

// orphans waits for the children of a program that is gone to go too.
func (r *rack) orphans() []int {
	var left []int
	for range 10 * time.Second / tick {
		if left = children(); len(left) == 0 {
			break
		}
		time.Sleep(tick)
	}
	// Collect what ended, or the dead would fill the process table.
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return left
		}
	}
}

// check looks at the ledger after a blow: sound, nothing acknowledged lost.
func (r *rack) check() error {
	if left := r.orphans(); len(left) > 0 {
		return fmt.Errorf("children live on: %v", left)
	}
	if _, err := os.Stat(r.db); os.IsNotExist(err) && r.storedSoFar == 0 {
		return nil
	}
	if code, log := r.ask("db", "check"); code != exitOK {
		return fmt.Errorf("db check: exit %d: %s", code, log)
	}
	n, err := r.stored()
	if err != nil {
		return err
	}
	if n < r.storedSoFar {
		return fmt.Errorf("%d runs are stored, %d were", n, r.storedSoFar)
	}
	r.storedSoFar = n
	return nil
}

// stored counts the runs in the ledger.
func (r *rack) stored() (int, error) {
	code, log := r.ask("db", "info", "--json")
	if code != exitOK {
		return 0, fmt.Errorf("db info: exit %d: %s", code, log)
	}
	var doc struct {
		Tables []struct {
			Name string `json:"name"`
			Rows int    `json:"rows"`
		} `json:"tables"`
	}
	if err := json.Unmarshal([]byte(log), &doc); err != nil {
		return 0, err
	}
	for _, t := range doc.Tables {
		if t.Name == "run" {
			return t.Rows, nil
		}
	}
	return 0, fmt.Errorf("db info names no table of runs: %s", log)
}

// leftovers are the temporary files that stayed. The lock that keeps two
// experiments apart is a file that is never removed: who holds it is what counts.
func (r *rack) leftovers() []string {
	var out []string
	for _, pattern := range []string{filepath.Join(r.temp, "*"), r.db + "*tmp*", filepath.Join(r.dir, ".*")} {
		m, _ := filepath.Glob(pattern)
		out = append(out, m...)
	}
	return slices.DeleteFunc(out, func(path string) bool { return filepath.Base(path) == "bmoe-experiment.lock" })
}
