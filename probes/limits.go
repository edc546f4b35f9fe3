package probes

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Limit is one bound on this process's memory. Sizes are bytes.
type Limit struct {
	Name        string // what sets it: a group's file, an rlimit, the commit limit
	Bytes       int64
	Usage       int64 // charged against it now
	Reclaimable int64 // of Usage, file cache that is given back on demand
	Hard        bool  // exceeding it ends the process or fails the allocation; else it is throttled
}

// Free is what may still be held under the limit; never negative.
func (l Limit) Free() int64 {
	return max(0, l.Bytes-max(0, l.Usage-l.Reclaimable))
}

// limits is every bound found, and how much anonymous memory may be swapped.
type limits struct {
	all      []Limit
	swapRoom int64 // bytes of swap this process's groups still allow; noLimit when unbounded
	noZswap  bool  // a group forbids the compressed pool
	problem  error // a bound exists and could not be read: the budget is unknown
}

// groupLimits reads the bounds of every control group up the hierarchy.
func (h *Host) groupLimits() limits {
	out := limits{swapRoom: noLimit}
	groups, err := h.memoryGroups()
	if err != nil {
		out.problem = fmt.Errorf("control groups: %w", err)
		return out
	}
	for _, g := range groups {
		if g.version == 1 {
			h.readV1(g, &out)
		} else {
			h.readV2(g, &out)
		}
	}
	return out
}

// readV1 adds a version 1 group: its limit, its memory-and-swap limit, and (at
// the top that can be seen) the limit of ancestors that cannot, which the
// kernel folds into hierarchical_memory_limit.
func (h *Host) readV1(g group, out *limits) {
	stat, _ := h.keyedFile(path.Join(g.dir, "memory.stat"))
	cache := v1Cache(stat)
	h.add(out, g, "memory.limit_in_bytes", "memory.usage_in_bytes", cache, true)
	if memsw, ok := h.add(out, g, "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes", cache, true); ok {
		mem, limited, _ := h.limitFile(path.Join(g.dir, "memory.limit_in_bytes"))
		if limited {
			out.swapRoom = min(out.swapRoom, max(0, memsw.Bytes-mem))
		}
	}
	if n, err := h.number(path.Join(g.dir, "memory.swappiness")); err == nil && n == 0 && len(out.all) > 0 {
		out.swapRoom = 0
	}
	hidden, ok := stat["hierarchical_memory_limit"]
	if !g.top || !ok || hidden >= noLimit {
		return
	}
	for _, l := range out.all {
		if l.Bytes <= hidden {
			return
		}
	}
	usage, err := h.number(path.Join(g.dir, "memory.usage_in_bytes"))
	if err == nil {
		out.all = append(out.all, Limit{Name: "ancestor of cgroup " + g.name, Bytes: hidden, Usage: usage, Reclaimable: cache, Hard: true})
	}
}

// readV2 adds a version 2 group: max ends the process, high throttles it.
func (h *Host) readV2(g group, out *limits) {
	stat, _ := h.keyedFile(path.Join(g.dir, "memory.stat"))
	cache := stat["inactive_file"] + stat["active_file"]
	h.add(out, g, "memory.max", "memory.current", cache, true)
	h.add(out, g, "memory.high", "memory.current", cache, false)
	swap, limited, err := h.limitFile(path.Join(g.dir, "memory.swap.max"))
	if err == nil && limited {
		used, _ := h.number(path.Join(g.dir, "memory.swap.current"))
		out.swapRoom = min(out.swapRoom, max(0, swap-used))
	}
	if zswap, limited, err := h.limitFile(path.Join(g.dir, "memory.zswap.max")); err == nil && limited && zswap == 0 {
		out.noZswap = true
	}
}

// v1Cache is the file cache a version 1 group can give back, its children's
// included, because its usage includes theirs.
func v1Cache(stat keyed) int64 {
	inactive, _ := stat.first("total_inactive_file", "inactive_file")
	active, _ := stat.first("total_active_file", "active_file")
	return inactive + active
}

// add reads one limit file and what is charged against it. A limit without a
// readable usage is a problem: what is free under it is unknown.
func (h *Host) add(out *limits, g group, limitName, usageName string, cache int64, hard bool) (Limit, bool) {
	bytes, limited, err := h.limitFile(path.Join(g.dir, limitName))
	if err == nil && !limited {
		return Limit{}, false
	}
	var usage int64
	if err == nil {
		usage, err = h.number(path.Join(g.dir, usageName))
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is set and %s is missing", limitName, usageName)
		}
		out.problem = errors.Join(out.problem, fmt.Errorf("cgroup %s: %w", g.name, err))
		return Limit{}, false
	}
	l := Limit{Name: limitName + " of cgroup " + g.name, Bytes: bytes, Usage: usage, Reclaimable: min(cache, usage), Hard: hard}
	out.all = append(out.all, l)
	return l, true
}
