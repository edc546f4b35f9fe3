// Command bmoe runs Mixture-of-Experts models larger than memory by streaming
// their routed experts from flash, plans every setting from measured facts and
// keeps a ledger of what it predicted and what it measured.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The signals stay caught to the very end: one that falls while the program
	// exits must not make a run that is stored look like one that was killed.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A reader that goes away (bmoe run | head) makes a write fail, and what was
	// measured until then is stored; the signal would end the program before.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
