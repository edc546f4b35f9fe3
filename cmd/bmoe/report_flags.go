package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/reports"
	"github.com/bmoe/bmoe/results"
)

type reportFlags struct {
	out        string
	formats    []string
	experiment string
	model      string
	since      string
	docs       string
	check      bool
}

// verify refuses what is given without effect: it would be taken for done.
func (f *reportFlags) verify(given func(string) bool) error {
	for _, flag := range []struct {
		name  string
		empty bool
	}{
		{"docs", f.docs == ""},
		{"out", f.out == ""},
		{"format", len(f.formats) == 0},
		{"experiment", f.experiment == ""},
		{"model", f.model == ""},
		{"since", f.since == ""},
	} {
		if flag.empty && given(flag.name) {
			return usageError{fmt.Errorf("--%s is empty", flag.name), "give it a value, or leave it out"}
		}
	}
	if f.docs != "" {
		for _, name := range []string{"out", "format", "experiment", "model", "since"} {
			if given(name) {
				return usageError{fmt.Errorf("--%s has no effect with --docs, which writes the whole report", name), "leave out --" + name + ", or --docs"}
			}
		}
		return nil
	}
	if f.check {
		return usageError{errors.New("--check is for --docs"), "for example `bmoe report --docs docs --check`"}
	}
	if f.experiment != "" {
		for _, name := range []string{"model", "since"} {
			if given(name) {
				return usageError{fmt.Errorf("--%s with --experiment, which chooses its runs itself", name), "leave out --" + name + ", or --experiment"}
			}
		}
	}
	for _, name := range f.formats {
		if !slices.Contains(reports.Formats, name) {
			return usageError{fmt.Errorf("--format %q is none of %s", name, strings.Join(reports.Formats, ", ")), "for example `bmoe report --format html --out report`"}
		}
	}
	f.formats = once(f.formats)
	if f.out == "" && len(f.formats) > 1 {
		return usageError{fmt.Errorf("--format: %d formats for standard output", len(f.formats)), "give one --format, or --out DIR"}
	}
	return nil
}

// once keeps the first of equal words.
func once(words []string) (out []string) {
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// fault says which flag chose what the ledger does not have.
func (f *reportFlags) fault(err error) error {
	name, hint := "--model", "`bmoe db list` lists the models"
	if f.experiment != "" {
		name, hint = "--experiment", "`bmoe experiments list` lists them"
	}
	switch {
	case errors.Is(err, results.ErrInvalid):
		return usageError{fmt.Errorf("--since %q is neither a date nor an RFC 3339 time", f.since), "for example --since 2026-01-31"}
	case errors.Is(err, results.ErrNotFound), errors.Is(err, results.ErrAmbiguous):
		return usageError{fmt.Errorf("%s: %w", name, err), hint}
	}
	return ledgerFault(err)
}
