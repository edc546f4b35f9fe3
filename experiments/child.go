package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// Bounds of what is kept of a child's output.
const (
	maxDocument = 256 << 20
	maxStderr   = 8 << 10
	maxHead     = 2 << 10 // of those, from the beginning
)

// Child performs each run in a fresh process of its own process group: Path
// with Args is given the arm's configuration as JSON on stdin and answers with
// one run document on stdout. A child that crashes, hangs or refuses to start
// is described by the record like any other.
type Child struct {
	Path     string
	Args     []string
	Env      []string      // all of its environment
	Timeout  time.Duration // 0: none
	MemoryMB int           // memory limit of the child alone; 0: none
	Now      func() time.Time
}

// Run implements Runner.
func (c *Child) Run(ctx context.Context, job Job) record.Run {
	start := c.now()
	out, err := c.perform(ctx, job)
	run := out.record(ctx, err)
	if run.StartedAt.IsZero() {
		run.StartedAt = start
	}
	if run.FinishedAt.IsZero() {
		run.FinishedAt = c.now()
	}
	if run.State != record.StateDone {
		run.Config = job.Arm.Config
	}
	run.Schema = record.RunSchema
	return run
}

func (c *Child) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now().UTC()
}

// outcome is what is known of a child that has ended.
type outcome struct {
	started  bool
	timedOut bool
	oomKills int64 // by the kernel, anywhere, while the child ran
	state    *os.ProcessState
	stdout   bytes.Buffer
	stderr   endsBuffer
	limitMB  int
}

// perform runs the child to its end. The thread that starts it is held until
// then, because the child is told to die with its parent and on Linux that
// means the parent's thread.
func (c *Child) perform(ctx context.Context, job Job) (*outcome, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out := &outcome{limitMB: c.MemoryMB}
	input, err := json.Marshal(job.Arm.Config)
	if err != nil {
		return out, fmt.Errorf("write the arm's configuration: %w", err)
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if c.Timeout > 0 {
		bounded, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	cmd := exec.CommandContext(bounded, c.Path, c.Args...)
	cmd.Env = append([]string{}, c.Env...) // nil would be all of this process's
	cmd.Stdout, cmd.Stderr = &limitedWriter{&out.stdout, maxDocument}, &out.stderr
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return out, fmt.Errorf("open the child's stdin: %w", err)
	}
	kills := oomKills()
	if err := cmd.Start(); err != nil {
		return out, fmt.Errorf("start %s: %w", c.Path, err)
	}
	out.started = true
	release, err := confine(cmd.Process.Pid, c.MemoryMB)
	if err != nil {
		_ = killGroup(cmd.Process)
		_ = cmd.Wait()
		out.started = false
		return out, err
	}
	defer release()
	// The child waits for its configuration, so it is confined before it
	// allocates anything. A child that has died already makes the write fail,
	// which its exit status explains better.
	_, _ = stdin.Write(input)
	_ = stdin.Close()
	err = cmd.Wait()
	out.state = cmd.ProcessState
	out.timedOut = ctx.Err() == nil && bounded.Err() != nil
	out.oomKills = oomKills() - kills
	return out, err
}

// record turns an outcome into a run.
func (o *outcome) record(ctx context.Context, err error) record.Run {
	var run record.Run
	parsed := json.Unmarshal(o.stdout.Bytes(), &run)
	if parsed != nil {
		run = record.Run{}
	}
	if err == nil && parsed == nil {
		if run.State == "" {
			run.State = record.StateDone
		}
		return run
	}
	run.Stderr = o.stderr.String()
	if o.state != nil {
		run.ExitCode = o.state.ExitCode()
	}
	run.Error, run.State = o.explain(ctx, err, parsed, &run)
	return run
}

func (o *outcome) explain(ctx context.Context, err, parsed error, run *record.Run) (text, state string) {
	switch sig := o.signal(); {
	case ctx.Err() != nil:
		return "interrupted by the caller", record.StateInterrupted
	case !o.started:
		return err.Error(), record.StateUnstarted
	case o.timedOut:
		return "did not end in its time and was ended", record.StateTimeout
	case sig != 0:
		run.Signal = signalName(sig)
		return o.killedBy(sig), record.StateKilled
	case err == nil:
		return fmt.Sprintf("answered with something that is no run document: %v", parsed), record.StateFailed
	}
	if line, name := crashLine(run.Stderr); line != "" {
		run.Signal = name
		if name != "" {
			return line, record.StateKilled
		}
		return line, record.StateFailed
	}
	text = lastLine(run.Stderr)
	if text == "" {
		text = err.Error()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == 2 || exit.ExitCode() == 3) {
		return text, record.StateUnstarted
	}
	return text, record.StateFailed
}

func (o *outcome) signal() syscall.Signal {
	if o.state == nil {
		return 0
	}
	if ws, ok := o.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}

func (o *outcome) killedBy(sig syscall.Signal) string {
	if sig == syscall.SIGKILL && o.oomKills > 0 {
		if o.limitMB > 0 {
			return fmt.Sprintf("killed by its memory limit of %d MiB", o.limitMB)
		}
		return "killed by its memory limit"
	}
	return "killed by " + signalName(sig)
}

func signalName(sig syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGKILL: "SIGKILL", syscall.SIGSEGV: "SIGSEGV", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS",
		syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT", syscall.SIGFPE: "SIGFPE", syscall.SIGILL: "SIGILL",
	}
	if n, ok := names[sig]; ok {
		return n
	}
	return fmt.Sprintf("signal %d", int(sig))
}

// limitedWriter stops taking bytes at a bound.
type limitedWriter struct {
	b    *bytes.Buffer
	left int
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, errors.New("the child wrote more than a run document can be")
	}
	w.left -= len(p)
	return w.b.Write(p)
}
