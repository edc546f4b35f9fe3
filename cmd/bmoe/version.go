package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/engine"
	"github.com/bmoe/bmoe/probes"
)

func init() { register(newVersionCommand) }

func newVersionCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "what this program was built from",
		Example: "  bmoe version\n  bmoe version --json",
		Args:    exactArgs(0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return printVersion(a.stdout, readVersion(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// versionDoc is the document of version --json.
type versionDoc struct {
	Schema   string `json:"schema"`
	Version  string `json:"version"` // a tag, or one made from the commit
	Commit   string `json:"commit"`  // empty when built outside a git checkout
	Dirty    bool   `json:"dirty"`   // the checkout had changes of its own
	LlamaCPP string `json:"llama_cpp"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func readVersion() versionDoc {
	b := probes.Build()
	return versionDoc{
		Schema: "bmoe.version/1", Version: moduleVersion(), Commit: b.Commit, Dirty: b.Dirty,
		LlamaCPP: engine.Release, Go: b.Go, OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
}

func printVersion(w io.Writer, v versionDoc, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	commit := v.Commit
	switch {
	case commit == "":
		commit = "not recorded"
	case v.Dirty:
		commit += ", with changes"
	}
	_, err := fmt.Fprintf(w, "bmoe %s\ncommit     %s\nllama.cpp  %s\nbuilt by   %s for %s/%s\n", v.Version, commit, v.LlamaCPP, v.Go, v.OS, v.Arch)
	return err
}
