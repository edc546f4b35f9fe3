package probes

import (
	"fmt"
	"strconv"
	"strings"
)

// mount is one line of /proc/self/mountinfo.
type mount struct {
	dev    string // major:minor
	root   string // path inside the file system that is mounted here
	point  string // where it is mounted
	fstype string
	source string
	super  string // options of the file system itself
}

// mounts lists what is mounted, in mount order.
func (h *Host) mounts() ([]mount, error) {
	const file = "/proc/self/mountinfo"
	text, err := h.read(file)
	if err != nil {
		return nil, err
	}
	var out []mount
	for line := range strings.Lines(text) {
		if m, ok := parseMount(line); ok {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no readable line", file)
	}
	return out, nil
}

// parseMount reads a mountinfo line: fixed fields, optional ones, a dash, and
// the file system's own three.
func parseMount(line string) (mount, bool) {
	head, tail, ok := strings.Cut(strings.TrimSpace(line), " - ")
	a, b := strings.Fields(head), strings.Fields(tail)
	if !ok || len(a) < 6 || len(b) < 2 {
		return mount{}, false
	}
	m := mount{dev: a[2], root: unescape(a[3]), point: unescape(a[4]), fstype: b[0], source: unescape(b[1])}
	if len(b) > 2 {
		m.super = b[2]
	}
	return m, true
}

// unescape undoes the kernel's octal escapes of blanks in paths.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// under reports whether p is dir or lies in it, and the rest of p.
func under(p, dir string) (string, bool) {
	if dir == "/" {
		return strings.TrimPrefix(p, "/"), true
	}
	if p == dir {
		return "", true
	}
	rest, ok := strings.CutPrefix(p, dir+"/")
	return rest, ok
}
