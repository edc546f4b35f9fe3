package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Exit codes, for scripts.
const (
	exitOK          = 0
	exitFailure     = 1   // something went wrong while running
	exitUsage       = 2   // the command line is not one we understand
	exitNoPlan      = 3   // no plan fits
	exitUndecided   = 4   // a verdict was required and is undecided or void
	exitData        = 5   // data conflict, or a database that is corrupt or not ours
	exitInterrupted = 130 // interrupted; everything stored is resumable
)

// usageError is a command line we do not understand, with what to type next.
type usageError struct {
	err  error
	hint string
}

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// codedError carries the exit code and what to type next.
type codedError struct {
	err  error
	code int
	hint string
}

func (e codedError) Error() string { return e.err.Error() }
func (e codedError) Unwrap() error { return e.err }

// withHint adds what to type next to a runtime failure.
func withHint(err error, hint string) error { return codedError{err, exitFailure, hint} }

// report prints err, if any, and returns the exit code it stands for.
func report(ctx context.Context, err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	var usage usageError
	var coded codedError
	code, hint := exitFailure, ""
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil: // wherever the interrupt fell
		code, err = exitInterrupted, errors.New("interrupted")
	case errors.As(err, &usage):
		code, hint = exitUsage, usage.hint
	case errors.As(err, &coded):
		code, hint = coded.code, coded.hint
	case strings.HasPrefix(err.Error(), "unknown command"): // cobra has no type for it
		code, hint = exitUsage, "`bmoe --help` lists the commands"
	}
	fmt.Fprintf(stderr, "bmoe: %s\n", printable(err.Error()))
	if hint != "" {
		fmt.Fprintf(stderr, "      %s\n", hint)
	}
	return code
}

// printable writes control characters as escapes: a file's name must not move the
// cursor of who reads the message.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
