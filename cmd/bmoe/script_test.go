package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bmoe/bmoe/results"
)

// TestScripts runs the program as a shell would: exit codes, messages, and the
// next step that each message names.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(cond string) (bool, error) {
			path, ok := strings.CutPrefix(cond, "exists:")
			if !ok {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			_, err := os.Stat(path)
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_DATA_HOME", e.WorkDir+"/data")
			return nil
		},
	})
}

// exits runs a command and checks its exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// An interrupt is exit code 130 wherever it falls, not the fault of what it
// fell on: opening the ledger of a sweep was seen to be one.
func TestAnInterruptIsNoFaultOfTheLedger(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := openStore(ctx, filepath.Join(t.TempDir(), "r.db"), results.Options{})
	for name, err := range map[string]error{
		"opening the ledger": err,
		"with a hint":        withHint(fmt.Errorf("storing: %w", context.Canceled), "give --db a path that can be written"),
		"as a bad flag":      usageError{fmt.Errorf("-f: %w", context.Canceled), "give a readable text file"},
	} {
		var said bytes.Buffer
		if code := report(ctx, err, &said); code != exitInterrupted || said.String() != "bmoe: interrupted\n" {
			t.Errorf("%s: exit %d, %q", name, code, said.String())
		}
	}
}
