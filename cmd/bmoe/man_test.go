package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestManWritesAPageForEveryCommand(t *testing.T) {
	dir := t.TempDir()
	ref := filepath.Join(dir, "cli.md")
	t.Setenv("BMOE_DB", "/home/somebody/secret.db")
	if code, _, errs := runBmoe(t, "man", dir, "--markdown", ref); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	text, err := os.ReadFile(ref)
	if err != nil {
		t.Fatal(err)
	}
	root := newRoot(&app{stdout: io.Discard, stderr: io.Discard})
	for _, c := range visible(root) {
		page := filepath.Join(dir, "man", "man1", strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		if raw, err := os.ReadFile(page); err != nil || !bytes.Contains(raw, []byte(".SH NAME")) || bytes.Contains(raw, []byte("secret")) {
			t.Errorf("%s: no man page, or one that holds this user's paths (%v)", c.CommandPath(), err)
		}
		if !strings.Contains(string(text), "\n## "+c.CommandPath()+"\n") {
			t.Errorf("%s is not in the command reference", c.CommandPath())
		}
	}
	if bytes.Contains(text, []byte("secret")) {
		t.Error("the command reference holds this user's paths")
	}
	for _, name := range []string{"bmoe.bash", "_bmoe", "bmoe.fish"} {
		if info, err := os.Stat(filepath.Join(dir, "completions", name)); err != nil || info.Size() == 0 {
			t.Errorf("completion %s: %v", name, err)
		}
	}
}

// The exit codes of the reference are those of the program.
func TestExitTable(t *testing.T) {
	for _, code := range []int{exitOK, exitFailure, exitUsage, exitNoPlan, exitUndecided, exitData, exitInterrupted} {
		if !strings.Contains(exitTable, fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("exit code %d is not in the table", code)
		}
	}
}

// Every command shows how it is used.
func TestEveryCommandHasAnExample(t *testing.T) {
	root := newRoot(&app{stdout: io.Discard, stderr: io.Discard})
	for _, c := range visible(root) {
		if c.Name() == "completion" || c.Parent() != nil && c.Parent().Name() == "completion" {
			continue // cobra's own, with an example in their text
		}
		if !c.HasExample() && !c.HasAvailableSubCommands() {
			t.Errorf("%s has no example", c.CommandPath())
		}
	}
}
