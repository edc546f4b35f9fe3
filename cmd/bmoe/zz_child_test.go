package main

import (
	"context"
	"os"
)

// The probes start this program again to touch devices and to hold memory. In
// a test the program is the test binary, which then acts as the program. The
// file's name puts this after the registration of every command.
func init() {
	if os.Getenv(childEnv) != "" {
		os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
}
