package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary stand in for the program where a command
// starts its own executable: a probe's child must probe, not run every test
// again, each of which would start children of its own.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){"bmoe": main})
}
