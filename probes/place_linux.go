package probes

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// placeOf says where the file at path lives.
func placeOf(path string) (place, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return place{}, fmt.Errorf("file system of %s: %w", path, err)
	}
	p := placeByMagic(uint32(fs.Type))
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return place{}, fmt.Errorf("stat %s: %w", path, err)
	}
	dev := uint64(st.Dev)
	p.dev = fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev))
	return p, nil
}
