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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
