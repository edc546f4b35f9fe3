package probes

import (
	"fmt"
	"strconv"
	"strings"
)

// keyed is a file of "name value" lines: /proc/meminfo, memory.stat. Values
// are bytes where the file says kB, and as they are otherwise.
type keyed map[string]int64

// keyedFile reads a file of "name value [kB]" lines. Lines that do not parse
// are left out: what is missing is then unknown by name.
func (h *Host) keyedFile(name string) (keyed, error) {
	text, err := h.read(name)
	if err != nil {
		return nil, err
	}
	k := keyed{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || n < 0 {
			continue
		}
		if len(fields) > 2 && fields[2] == "kB" {
			if n > 1<<52 {
				continue
			}
			n <<= 10
		}
		k[strings.TrimSuffix(fields[0], ":")] = n
	}
	if len(k) == 0 {
		return nil, fmt.Errorf("/%s holds no readable line", clean(name))
	}
	return k, nil
}

// need returns a value by name, or says that the file does not have it.
func (k keyed) need(file, name string) (int64, error) {
	n, ok := k[name]
	if !ok {
		return 0, fmt.Errorf("/%s has no readable %s", clean(file), name)
	}
	return n, nil
}

// first returns the first of the names that the file has.
func (k keyed) first(names ...string) (int64, bool) {
	for _, name := range names {
		if n, ok := k[name]; ok {
			return n, true
		}
	}
	return 0, false
}
