package experiments

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// CanDrop says that this platform can empty the page cache of a file.
const CanDrop = true

// DropFiles empties the page cache of files. Dirty pages are written first:
// the kernel keeps those, and a model that was just made is dirty. Pages that
// another process has mapped stay; the caller looks again.
func DropFiles(paths []string) error {
	for _, p := range paths {
		if err := dropFile(p); err != nil {
			return fmt.Errorf("empty the page cache of %s: %w", p, err)
		}
	}
	return nil
}

func dropFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	// The first pass moves pages off the processors' own lists, where they
	// are not yet seen as droppable.
	for range 2 {
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			return err
		}
	}
	return nil
}
