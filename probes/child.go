package probes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Child starts this program again to do one dangerous thing, and answers with
// what it printed. A child that died or did not answer in its time is a
// *ChildError, which is a fact about what it touched and not a failure of ours.
type Child func(ctx context.Context, args []string) ([]byte, error)

// ChildError says how a child ended instead of answering.
type ChildError struct {
	Signal   string        // the signal that ended it, if one did
	ExitCode int           // its exit code, if it ended by itself
	Timeout  time.Duration // the time it was given, if it did not answer in it
	Stderr   string        // the end of what it said
	Output   []byte        // what it had printed by then
}

func (e *ChildError) Error() string {
	said := ""
	if e.Stderr != "" {
		said = ": " + e.Stderr
	}
	switch {
	case e.Timeout > 0:
		return fmt.Sprintf("its probe did not answer in %s%s", e.Timeout, said)
	case e.Signal != "":
		return fmt.Sprintf("its probe ended the process that ran it (%s)%s", e.Signal, said)
	}
	return fmt.Sprintf("its probe ended with code %d%s", e.ExitCode, said)
}

// Self returns a Child that starts the executable at exe. Its standard input is
// a pipe that closes when this process ends, so that a child which watches it
// does not outlive its parent.
func Self(exe string, limit time.Duration, env ...string) Child {
	return func(ctx context.Context, args []string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		cmd := exec.CommandContext(ctx, exe, args...)
		cmd.Env = ChildEnv(os.Environ(), env...)
		cmd.WaitDelay = 2 * time.Second
		var out, said tail
		out.most, said.most = 1<<20, 2<<10
		cmd.Stdout, cmd.Stderr = &out, &said
		hold, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		defer hold.Close()
		err = cmd.Run()
		if err == nil {
			return out.bytes, nil
		}
		return out.bytes, childError(ctx, err, limit, &out, &said)
	}
}

// childError tells the ways a child can fail apart.
func childError(ctx context.Context, err error, limit time.Duration, out, said *tail) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	e := &ChildError{Stderr: said.lastLine(), Output: out.bytes}
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Timeout = limit
	case errors.As(err, &exit):
		e.ExitCode = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.Signal = fmt.Sprintf("signal %d: %s", int(ws.Signal()), ws.Signal())
		}
	default:
		return fmt.Errorf("start a probe's process: %w", err)
	}
	return e
}

// tail keeps the last most bytes written to it.
type tail struct {
	most  int
	bytes []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.bytes = append(t.bytes, p...)
	if over := len(t.bytes) - t.most; over > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
	}
	return len(p), nil
}

// lastLine is the last line that says anything.
func (t *tail) lastLine() string {
	text := string(t.bytes)
	for end := len(text); end > 0; {
		start := end - 1
		for start > 0 && text[start-1] != '\n' {
			start--
		}
		if line := strings.TrimSpace(text[start:end]); line != "" {
			return line
		}
		end = start
	}
	return ""
}
