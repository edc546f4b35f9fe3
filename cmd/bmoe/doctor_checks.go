package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/results"
)

// checkup is what doctor looks at, and how.
type checkup struct {
	model, db   string
	host        *probes.Host
	libraries   func() (dir, module string, err error)
	locks       func(hold planner.Fact[int64]) planner.LockFacts
	directReads func(path string) error
}

func (c checkup) findings(ctx context.Context) []finding {
	out := c.checkLibraries()
	out = append(out, c.checkMemory(), c.checkLocks(), c.checkDatabase(ctx))
	if c.model != "" {
		out = append(out, c.checkModel()...)
	}
	return out
}

func (c checkup) checkLibraries() []finding {
	dir, module, err := c.libraries()
	if err != nil {
		return []finding{{"llama.cpp", stateMissing, err.Error(), "in a checkout: `make build`; from a release: unpack it again, with bin/ and lib/ side by side"}}
	}
	return []finding{
		fine("llama.cpp", "libraries in "+dir),
		fine("cpu module", module+" chosen for this processor"),
	}
}

func (c checkup) checkMemory() finding {
	const name = "memory"
	m := c.host.Memory()
	hold, ok := m.Holdable.Get()
	if !ok {
		return finding{name, stateWarning, "how much may be held is unknown: " + m.Holdable.Reason, "give the expert cache a size yourself: --cache-mb N"}
	}
	detail := humanize.IBytes(uint64(max(0, hold))) + " may be held"
	if limit, ok := m.LimitBytes.Get(); ok && limit > 0 {
		detail += fmt.Sprintf(", under a limit of %s (%s)", humanize.IBytes(uint64(limit)), m.LimitBytes.Reason)
	} else {
		detail += ", no limit set"
	}
	return fine(name, detail)
}

// modestLock is a lock limit too small for an expert cache worth locking.
const modestLock = 256 << 20

func (c checkup) checkLocks() finding {
	const name = "memory locks"
	in := c.locks(c.host.Memory().Holdable).InPlace
	n, ok := in.Get()
	switch {
	case !ok:
		return finding{name, stateWarning, "how much may be locked is unknown: " + in.Reason, "--cache-pin and --dense-weights pinned will lock what they are granted and say so"}
	case n < modestLock:
		return finding{
			name, stateWarning, fmt.Sprintf("%s may be locked (%s)", humanize.IBytes(uint64(max(0, n))), in.Reason),
			"to lock the cache or the dense weights: `ulimit -l unlimited` as root, or LimitMEMLOCK=infinity in a systemd unit",
		}
	}
	return fine(name, fmt.Sprintf("%s may be locked (%s)", humanize.IBytes(uint64(n)), in.Reason))
}

func (c checkup) checkDatabase(ctx context.Context) finding {
	const name = "results"
	const elsewhere = "name another file with --db FILE or BMOE_DB"
	path, err := filepath.Abs(c.db)
	if err != nil {
		return finding{name, stateMissing, err.Error(), elsewhere}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err := canCreateUnder(filepath.Dir(path)); err != nil {
			return finding{name, stateMissing, fmt.Sprintf("%s cannot be made: %v", path, err), elsewhere}
		}
		return fine(name, path+", made by the first run")
	}
	if err != nil {
		return finding{name, stateMissing, err.Error(), elsewhere}
	}
	f.Close()
	s, err := results.Open(ctx, path, results.Options{ReadOnly: true})
	if err != nil {
		return finding{name, stateMissing, err.Error(), elsewhere}
	}
	s.Close()
	return fine(name, path)
}

// canCreateUnder tries a file in dir or, while dir is not there, in the nearest
// folder above it that is.
func canCreateUnder(dir string) error {
	for {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return err
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".bmoe-doctor-*")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

func (c checkup) checkModel() []finding {
	m, err := model.Open(c.model)
	if err != nil {
		return []finding{{"model", stateMissing, err.Error(), aModel}}
	}
	out := []finding{fine("model", fmt.Sprintf("%s: %d layers of %d experts, %d used a token", m.Arch, m.Layers, m.Experts, m.ExpertsUsed))}
	if len(m.ExpertTensors) == 0 {
		out[0] = finding{"model", stateWarning, c.model + " is dense: it has no routed experts to stream", "run it without --moe-stream"}
	}
	for _, shard := range m.Shards {
		if err := c.directReads(shard); err != nil {
			return append(out, finding{"direct reads", stateWarning, shard + ": " + err.Error(), "nothing: reads will go through the page cache (--no-odirect); a local ext4 or xfs file system is faster"})
		}
	}
	return append(out, fine("direct reads", "work on the model's drive"))
}
