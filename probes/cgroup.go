package probes

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// noLimit is above every limit a kernel enforces: version 1 writes "unlimited"
// as the largest page count, a number near 2^63.
const noLimit = int64(1) << 60

// group is one control group that bounds this process, as a folder.
type group struct {
	version int    // 1 or 2
	name    string // the kernel's path of it
	dir     string // where its files are
	top     bool   // the highest one that can be seen from here
}

// memoryGroups lists the control groups that account this process's memory,
// innermost first. None without control groups; an error when there are some
// and they cannot be found.
func (h *Host) memoryGroups() ([]group, error) {
	text, err := h.read("/proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	paths := parseCgroups(text)
	if len(paths) == 0 {
		return nil, errors.New("/proc/self/cgroup holds no readable line")
	}
	mounts, err := h.mounts()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []group
	for _, version := range []int{1, 2} {
		p, ok := paths[version]
		if !ok {
			continue
		}
		if m, ok := cgroupMount(mounts, version); ok {
			out = append(out, climb(version, p, m)...)
		}
	}
	return out, nil
}

// parseCgroups finds this process's memory group of either version.
func parseCgroups(text string) map[int]string {
	paths := map[int]string{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			paths[2] = parts[2]
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			paths[1] = parts[2]
		default:
			if _, err := strconv.Atoi(parts[0]); err == nil {
				paths[0] = parts[2] // a hierarchy without memory: proof that the file is sound
			}
		}
	}
	return paths
}

// cgroupMount finds where a version's memory hierarchy is mounted. The last
// mount wins, being the one that is visible.
func cgroupMount(mounts []mount, version int) (mount, bool) {
	for _, m := range slices.Backward(mounts) {
		if version == 2 && m.fstype == "cgroup2" {
			return m, true
		}
		if version == 1 && m.fstype == "cgroup" && slices.Contains(strings.Split(m.super, ","), "memory") {
			return m, true
		}
	}
	return mount{}, false
}

// climb lists the folders from the process's group up to the mount point. In a
// container the mount's root is the container's own group, and a path outside
// of it (shown as /..) leaves only the mount point to read.
func climb(version int, p string, m mount) []group {
	rest, ok := under(path.Clean(p), m.root)
	if !ok || strings.HasPrefix(p, "/..") {
		rest = ""
	}
	var out []group
	for {
		dir, name := path.Join(m.point, rest), path.Join(m.root, rest)
		out = append(out, group{version: version, name: name, dir: dir, top: rest == ""})
		if rest == "" {
			return out
		}
		if rest = path.Dir(rest); rest == "." {
			rest = ""
		}
	}
}

// limitFile reads a limit: a number, or a word for none. A missing file is no
// limit, for root groups have none; a garbled one is an error.
func (h *Host) limitFile(name string) (int64, bool, error) {
	text, err := h.word(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	if text == "max" || text == "-1" {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("/%s holds %q, not a limit", clean(name), clip(text))
	}
	if n >= uint64(noLimit) {
		return 0, false, nil
	}
	return int64(n), true, nil
}
