package probes

import (
	"fmt"
	"strconv"
	"strings"
)

// rlimit reads a soft resource limit of this process by the name the kernel
// prints. limited is false when it is "unlimited".
func (h *Host) rlimit(name string) (value int64, limited bool, err error) {
	const file = "/proc/self/limits"
	text, err := h.read(file)
	if err != nil {
		return 0, false, err
	}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		fields := strings.Fields(rest)
		if !ok || len(fields) == 0 {
			continue
		}
		if fields[0] == "unlimited" {
			return 0, false, nil
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			break
		}
		return n, true, nil
	}
	return 0, false, fmt.Errorf("%s has no readable %q", file, name)
}

// processLimits adds the bounds that a process carries itself: its address
// space and data limits, and the commit limit where overcommit is forbidden.
func (h *Host) processLimits(mem keyed) []Limit {
	var out []Limit
	status, err := h.keyedFile("/proc/self/status")
	if err == nil {
		for _, r := range []struct{ limit, usage string }{
			{"Max address space", "VmSize"}, {"Max data size", "VmData"},
		} {
			n, limited, err := h.rlimit(r.limit)
			used, ok := status[r.usage]
			if err == nil && limited && ok && n < noLimit {
				out = append(out, Limit{Name: "rlimit " + strings.ToLower(r.limit), Bytes: n, Usage: used, Hard: true})
			}
		}
	}
	if mode, err := h.number("/proc/sys/vm/overcommit_memory"); err == nil && mode == 2 {
		limit, ok1 := mem["CommitLimit"]
		used, ok2 := mem["Committed_AS"]
		if ok1 && ok2 {
			out = append(out, Limit{Name: "commit limit (overcommit is off)", Bytes: limit, Usage: used, Hard: true})
		}
	}
	return out
}
