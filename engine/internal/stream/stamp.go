package stream

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// stamp is what tells a file from another one, or from itself after a change.
type stamp struct {
	dev, ino   uint64
	size       int64
	sec, nanos int64
}

func stampOf(st *unix.Stat_t) stamp {
	//nolint:unconvert // these are other integers on other systems
	return stamp{uint64(st.Dev), st.Ino, st.Size, int64(st.Mtim.Sec), int64(st.Mtim.Nsec)}
}

// mark remembers the shards as they are now.
func (f *Files) mark() error {
	f.stamps = make([]stamp, len(f.names))
	for i, name := range f.names {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			return &os.PathError{Op: "stat", Path: name, Err: err}
		}
		f.stamps[i] = stampOf(&st)
	}
	return nil
}

// Unchanged fails when a shard was replaced, truncated or written to since it
// was opened: what is cached and what would be read no longer belong together.
func (f *Files) Unchanged() error {
	for i, name := range f.names {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			return fmt.Errorf("%s: the model file is gone while it is in use: %w", name, err)
		}
		if now := stampOf(&st); now != f.stamps[i] {
			return fmt.Errorf("%s: the model file changed while it was in use (%s): run again", name, f.stamps[i].difference(now))
		}
	}
	return nil
}

func (s stamp) difference(now stamp) string {
	switch {
	case s.dev != now.dev || s.ino != now.ino:
		return "another file has its name"
	case s.size != now.size:
		return fmt.Sprintf("%d bytes, it had %d", now.size, s.size)
	}
	return "it was written to"
}
