package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// childMode makes the test binary play a child; what it does depends on it.
const childMode = "BMOE_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		os.Exit(playChild(mode))
	}
	os.Exit(m.Run())
}

func playChild(mode string) int {
	raw, err := io.ReadAll(os.Stdin)
	var c config.Config
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bmoe: bad configuration:", err)
		return 2
	}
	switch mode {
	case "answer":
		return answer(doneRun(c, 25), 0)
	case "fail":
		r := doneRun(c, 25)
		r.State, r.Error = record.StateFailed, "read of expert 3 failed"
		fmt.Fprintln(os.Stderr, "bmoe: read of expert 3 failed\n      check the drive")
		return answer(r, 1)
	case "refuse":
		fmt.Fprintln(os.Stderr, "bmoe: --cache-pin: not allowed here\n      see --help")
		return 2
	case "garbage":
		fmt.Println("hello")
		return 0
	case "crash":
		fmt.Fprintln(os.Stderr, "about to crash")
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {}
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "hang":
		fmt.Fprintln(os.Stderr, "hanging")
		time.Sleep(time.Hour)
	case "chatter":
		for i := range 100000 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		return 1
	case "eat":
		return eat()
	}
	return 1
}

func answer(r record.Run, code int) int {
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return 1
	}
	return code
}

// eat takes and touches a gigabyte.
func eat() int {
	var hold [][]byte
	for range 64 {
		b := make([]byte, 16<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		hold = append(hold, b)
	}
	fmt.Fprintln(os.Stderr, "ate", len(hold))
	return 1
}

func child(t *testing.T, mode string) *Child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Child{Path: self, Env: []string{childMode + "=" + mode}, Timeout: time.Minute}
}

func TestChildOutcomes(t *testing.T) {
	job := Job{Arm: record.Arm{Name: "4", Config: baseConfig()}}
	for _, c := range []struct {
		mode, state, signal, text string
		exit                      int
	}{
		{mode: "answer", state: record.StateDone},
		{mode: "fail", state: record.StateFailed, exit: 1, text: "read of expert 3 failed"},
		{mode: "refuse", state: record.StateUnstarted, exit: 2, text: "--cache-pin: not allowed here"},
		{mode: "garbage", state: record.StateFailed, text: "no run document"},
		{mode: "crash", state: record.StateKilled, exit: 2, signal: "SIGSEGV", text: "SIGSEGV: segmentation violation"},
		{mode: "killed", state: record.StateKilled, exit: -1, signal: "SIGKILL", text: "killed by SIGKILL"},
		{mode: "chatter", state: record.StateFailed, exit: 1, text: "line 99999"},
	} {
		r := child(t, c.mode).Run(t.Context(), job)
		if r.State != c.state || r.Signal != c.signal || r.ExitCode != c.exit || !strings.Contains(r.Error, c.text) {
			t.Errorf("%s: state %s, signal %q, exit %d, error %q", c.mode, r.State, r.Signal, r.ExitCode, r.Error)
		}
		if len(r.Stderr) > maxStderr {
			t.Errorf("%s: %d bytes of stderr kept", c.mode, len(r.Stderr))
		}
		if r.StartedAt.IsZero() || r.FinishedAt.Before(r.StartedAt) || r.Schema != record.RunSchema || r.Config.Model != "model.gguf" {
			t.Errorf("%s: %+v", c.mode, r)
		}
	}
}

func TestChildMissing(t *testing.T) {
	c := &Child{Path: filepath.Join(t.TempDir(), "nothing")}
	if r := c.Run(t.Context(), Job{}); r.State != record.StateUnstarted || !strings.Contains(r.Error, "nothing") {
		t.Errorf("%s: %s", r.State, r.Error)
	}
}

func TestChildThatHangs(t *testing.T) {
	c := child(t, "hang")
	c.Timeout = 300 * time.Millisecond
	start := time.Now()
	r := c.Run(t.Context(), Job{Arm: record.Arm{Config: baseConfig()}})
	if r.State != record.StateTimeout || !strings.Contains(r.Stderr, "hanging") || time.Since(start) > 20*time.Second {
		t.Errorf("%s after %v: %s %q", r.State, time.Since(start), r.Error, r.Stderr)
	}
}

func TestChildInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	if r := child(t, "hang").Run(ctx, Job{Arm: record.Arm{Config: baseConfig()}}); r.State != record.StateInterrupted {
		t.Errorf("%s: %s", r.State, r.Error)
	}
}

// A child in a memory group of its own that asks for more is ended by the
// kernel, and the record says why.
func TestChildBeyondItsMemory(t *testing.T) {
	c := child(t, "eat")
	c.MemoryMB = 200
	r := c.Run(t.Context(), Job{Arm: record.Arm{Config: baseConfig()}})
	if r.State == record.StateUnstarted && strings.Contains(r.Error, "--run-memory-mb 200: ") {
		t.Logf("no right to make memory groups here: %s", r.Error)
		return
	}
	if r.State != record.StateKilled || r.Error != "killed by its memory limit of 200 MiB" {
		t.Errorf("%s: %s (%s)", r.State, r.Error, r.Stderr)
	}
}

func TestDropFiles(t *testing.T) {
	if !CanDrop {
		t.Log("this platform cannot empty the page cache")
		return
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := DropFiles([]string{path}); err != nil {
		t.Error(err)
	}
	if err := DropFiles([]string{path + "x"}); err == nil || !strings.Contains(err.Error(), "empty the page cache of") {
		t.Errorf("%v", err)
	}
}
