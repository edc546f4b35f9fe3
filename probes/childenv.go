package probes

import (
	"slices"
	"strings"
)

// passedOn are the variables a child needs of its parent's environment: where
// things lie, how text is written, and which devices their drivers may show.
var passedOn = []string{"HOME", "PATH", "TMPDIR", "TZ", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "GOMAXPROCS", "GOCOVERDIR"}

// passedPrefixes are the families of such variables.
var passedPrefixes = []string{"LC_", "XDG_", "GGML_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "VK_", "MESA_", "LP_", "ONEAPI_", "SYCL_", "ZE_", "OMP_", "KMP_"}

// ChildEnv is the environment of a child process: what it needs of environ and
// what is given beside it. Knobs set by variables are left out, for a child is
// told its configuration, and so is whatever else the caller's shell holds.
func ChildEnv(environ []string, given ...string) []string {
	out := []string{}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		family := slices.ContainsFunc(passedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		if family || slices.Contains(passedOn, name) {
			out = append(out, entry)
		}
	}
	return append(out, given...)
}
