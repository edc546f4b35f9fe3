package probes

import (
	"runtime"
	"runtime/debug"

	"github.com/bmoe/bmoe/results/record"
)

// Build identifies this program by what the Go linker wrote into it. The
// caller that links the engine adds the llama.cpp release and the CPU module
// with [WithEngine].
func Build() record.Build {
	b := record.Build{Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Dirty = s.Value == "true"
			}
		}
	}
	b.ID = b.ContentID()
	return b
}

// WithEngine adds what computes to a build, which makes it another build.
func WithEngine(b record.Build, llamaCPP, cpuModule string) record.Build {
	b.ID, b.LlamaCPP, b.CPUModule = "", llamaCPP, cpuModule
	b.ID = b.ContentID()
	return b
}
