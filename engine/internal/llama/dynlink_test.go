package llama

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the tests run this program again, somewhere else.
func TestMain(m *testing.M) {
	if os.Getenv("BMOE_TEST_INIT") != "" {
		if err := Init(); err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(3)
		}
		if os.Getenv("BMOE_TEST_INIT") == "truncate" {
			touchTruncated()
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestEveryFunctionIsBound(t *testing.T) {
	if err := Init(); err != nil {
		t.Fatal(err)
	}
	if CPUModule() == "" {
		t.Error("no CPU module named after a load that worked")
	}
}

// A program whose libraries are gone, or are another release's, must still get
// to main and say so.
func TestMissingLibrariesAreSaid(t *testing.T) {
	base, err := filepath.Abs(filepath.Join("lib", "libggml-base.so"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(base); err != nil {
		t.Skipf("library names of this system are not covered: %v", err)
	}
	for name, tc := range map[string]struct {
		plant func(dir string) error
		want  string
	}{
		"not a library": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "libllama.v0.4.0.so"), []byte("text"), 0o600)
		}, "lib/ beside bin/"},
		"another release": {func(dir string) error {
			return os.Symlink(base, filepath.Join(dir, "libllama.v0.4.0.so"))
		}, "has no function"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tc.plant(dir); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "BMOE_TEST_INIT=1", "LD_LIBRARY_PATH="+dir)
			out, err := cmd.Output()
			if err == nil {
				t.Fatal("bad libraries were accepted")
			}
			if got := string(out); !strings.Contains(got, tc.want) || !strings.Contains(got, "make build") {
				t.Errorf("it said %q (%v), want %q and what to type", got, err, tc.want)
			}
		})
	}
}
