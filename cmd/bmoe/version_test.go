package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine"
)

func TestVersionJSON(t *testing.T) {
	code, out, errs := runBmoe(t, "version", "--json")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var doc versionDoc
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.LlamaCPP != engine.Release || doc.Version == "" || !strings.HasPrefix(doc.Go, "go") {
		t.Errorf("version is incomplete: %+v", doc)
	}
}

func TestVersionText(t *testing.T) {
	for name, tc := range map[string]struct {
		doc  versionDoc
		want string
	}{
		"clean":    {versionDoc{Version: "v1.0.0", Commit: "abc", LlamaCPP: "v2"}, `(?m)^commit     abc$`},
		"changed":  {versionDoc{Version: "v1.0.0", Commit: "abc", Dirty: true}, `(?m)^commit     abc, with changes$`},
		"no git":   {versionDoc{Version: "(devel)"}, `(?m)^commit     not recorded$`},
		"headline": {versionDoc{Version: "v1.2.3"}, `^bmoe v1\.2\.3\n`},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := printVersion(&b, tc.doc, false); err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(tc.want).MatchString(b.String()) {
				t.Errorf("%q does not match %s", b.String(), tc.want)
			}
		})
	}
}

func TestVersionTakesNoArguments(t *testing.T) {
	if code, _, errs := runBmoe(t, "version", "now"); code != exitUsage || !strings.Contains(errs, "--help") {
		t.Errorf("exit %d, %q; want %d and what to type", code, errs, exitUsage)
	}
}
