package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/bmoe/bmoe/"

// listed is what `go list` says of a package.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
	CgoFiles   []string
}

// tree lists this module's packages.
func tree(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,CgoFiles", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// under reports whether a package is one of the folders or lies below one.
func under(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return path == module+f || strings.HasPrefix(path, module+f+"/")
	})
}

// direct fails for a package that imports one of the names itself.
func direct(t *testing.T, p listed, why string, names ...string) {
	t.Helper()
	for _, n := range names {
		if slices.Contains(p.Imports, n) {
			t.Errorf("%s imports %s: %s", strings.TrimPrefix(p.ImportPath, module), n, why)
		}
	}
}

// The layers: who may know of what. See docs/adr/0001-layers.md.
func TestImportRules(t *testing.T) {
	pkgs := tree(t)
	if len(pkgs) < 20 {
		t.Fatalf("only %d packages listed", len(pkgs))
	}
	for _, p := range pkgs {
		if len(p.CgoFiles) > 0 && p.ImportPath != module+"engine/internal/llama" {
			t.Errorf("%s uses cgo: only engine/internal/llama may", p.ImportPath)
		}
		if !under(p.ImportPath, "results") || under(p.ImportPath, "results/record") {
			direct(t, p, "only results may import SQL", "database/sql", "github.com/mattn/go-sqlite3")
		}
		if under(p.ImportPath, "planner", "analysis") {
			direct(t, p, "planner and analysis are pure", "C", "os", "os/exec", "net", "net/http", "syscall", "time/tzdata", "golang.org/x/sys/unix", "math/rand", "github.com/olekukonko/tablewriter")
		}
		if under(p.ImportPath, "planner", "analysis", "reports", "results/record") {
			for _, d := range p.Deps {
				if d == module+"engine/internal/llama" || d == module+"engine" || d == module+"results" {
					t.Errorf("%s reaches %s: it must build without cgo and SQL", p.ImportPath, d)
				}
			}
		}
		if under(p.ImportPath, "engine") {
			for _, d := range p.Deps {
				if under(d, "results", "experiments", "reports", "probes") && !under(d, "results/record") {
					t.Errorf("%s reaches %s: data flows from the engine to the ledger", p.ImportPath, d)
				}
			}
		}
	}
}

// The pure packages build where there is no C compiler.
func TestPurePackagesBuildWithoutCgo(t *testing.T) {
	cmd := exec.Command("go", "vet", module+"planner/...", module+"analysis/...", module+"reports/...", module+"results/record/...")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
