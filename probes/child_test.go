package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// jobEnv makes this test binary a child that does one job and ends.
const jobEnv = "BMOE_TEST_JOB"

func init() {
	// The main goroutine stays on the main thread, whose capabilities a job
	// may give up and which /proc/self/status describes.
	runtime.LockOSThread()
}

func TestMain(m *testing.M) {
	job := os.Getenv(jobEnv)
	if job == "" {
		os.Exit(m.Run())
	}
	if err := runJob(job); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// runJob is the child's side of the tests in this package.
func runJob(job string) error {
	switch job {
	case "answer":
		fmt.Println("fine")
		return nil
	case "fail":
		return errors.New("some reason")
	case "crash":
		fmt.Println("begun")
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		_ = p.Kill()
		select {}
	case "hang":
		time.Sleep(time.Minute)
		return nil
	case "outlive":
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	return platformJob(job)
}

func encode(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

func TestChildEndings(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(job string, limit time.Duration) ([]byte, error) {
		return Self(exe, limit, jobEnv+"="+job)(t.Context(), nil)
	}
	if out, err := run("answer", time.Minute); err != nil || string(out) != "fine\n" {
		t.Errorf("answer = %q, %v", out, err)
	}
	tests := []struct {
		job   string
		limit time.Duration
		check func(*ChildError) bool
		text  string
	}{
		{"fail", time.Minute, func(e *ChildError) bool { return e.ExitCode == 3 }, "ended with code 3: some reason"},
		{"crash", time.Minute, func(e *ChildError) bool { return e.Signal != "" && string(e.Output) == "begun\n" }, "signal 9"},
		{"hang", 200 * time.Millisecond, func(e *ChildError) bool { return e.Timeout > 0 }, "did not answer in 200ms"},
	}
	for _, tt := range tests {
		_, err := run(tt.job, tt.limit)
		var ce *ChildError
		if !errors.As(err, &ce) || !tt.check(ce) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %#v (%v), want %q", tt.job, ce, err, tt.text)
		}
	}
	if _, err := Self("/no/such/program", time.Second)(t.Context(), nil); err == nil || errors.As(err, new(*ChildError)) {
		t.Errorf("a program that is not there: %v, want an error that is no child's ending", err)
	}
}

func TestChildStopsWithItsCaller(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	start := time.Now()
	_, err = Self(exe, time.Minute, jobEnv+"=outlive")(ctx, nil)
	if !errors.Is(err, context.Canceled) || time.Since(start) > 10*time.Second {
		t.Errorf("err %v after %s", err, time.Since(start))
	}
}
