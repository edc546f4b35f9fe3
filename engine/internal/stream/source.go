package stream

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Source reads a model's shards. ReadAt may be called by all lanes at once,
// each with its own lane number.
type Source interface {
	// Align is the granule that offset, length and memory of a read must keep
	// to; 1 when any will do.
	Align() int64
	// Direct reports whether reads pass by the page cache.
	Direct() bool
	// ReadAt fills buf from the shard at off. At the end of the file it may
	// come short without an error.
	ReadAt(lane, shard int, buf []byte, off int64) (int, error)
	// Name is the shard's file name, for errors.
	Name(shard int) string
	Close() error
}

// Files is a Source over files: each lane has a descriptor of its own.
type Files struct {
	names  []string
	fds    [][]int // [lane][shard]
	align  int64
	direct bool
	stamps []stamp
	// Fallback says why reads go through the page cache although direct reads
	// were asked for; "" when they do not.
	Fallback string
}

// OpenFiles opens every shard once per lane. Direct reads are used only where
// the kernel states their alignment or takes 4096, and where a direct read has
// returned the very bytes a buffered one does.
func OpenFiles(names []string, lanes int, direct bool) (*Files, error) {
	f := &Files{names: names, align: 1}
	if err := f.mark(); err != nil {
		return nil, err
	}
	if direct {
		f.align, f.Fallback = directAlign(names)
		f.direct = f.Fallback == ""
	}
	flags := unix.O_RDONLY | unix.O_CLOEXEC
	if f.direct {
		flags |= unix.O_DIRECT
	}
	for range lanes {
		row := make([]int, 0, len(names))
		for _, name := range names {
			fd, err := unix.Open(name, flags, 0)
			if err != nil {
				f.fds = append(f.fds, row)
				_ = f.Close()
				return nil, &os.PathError{Op: "open", Path: name, Err: err}
			}
			row = append(row, fd)
		}
		f.fds = append(f.fds, row)
	}
	return f, nil
}

// Align implements Source.
func (f *Files) Align() int64 { return f.align }

// Direct implements Source.
func (f *Files) Direct() bool { return f.direct }

// Name implements Source.
func (f *Files) Name(shard int) string { return f.names[shard] }

// ReadAt implements Source.
func (f *Files) ReadAt(lane, shard int, buf []byte, off int64) (int, error) {
	fd, done := f.fds[lane][shard], 0
	for done < len(buf) {
		n, err := unix.Pread(fd, buf[done:], off+int64(done))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.EOF
		}
		done += n
		if f.direct && int64(n)%f.align != 0 {
			return done, io.EOF // a direct read comes short at the end of the file
		}
	}
	return done, nil
}

// Close closes every descriptor.
func (f *Files) Close() error {
	var errs []error
	for _, row := range f.fds {
		for _, fd := range row {
			errs = append(errs, unix.Close(fd))
		}
	}
	f.fds = nil
	return errors.Join(errs...)
}

// directAlign finds the alignment direct reads need on all shards and checks
// them; why is non-empty when they cannot be used.
func directAlign(names []string) (align int64, why string) {
	align = 512
	for _, name := range names {
		a, err := statxAlign(name)
		if err == nil && a > 0 {
			align = max(align, a)
		} else {
			align = max(align, 4096)
		}
	}
	for _, name := range names {
		if err := verifyDirect(name, align); err != nil {
			return 1, fmt.Sprintf("direct reads of %s refused (%v): reading through the page cache", name, err)
		}
	}
	return align, ""
}

// statxAlign asks the kernel what direct reads of the file must be aligned to.
func statxAlign(name string) (int64, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_DIOALIGN, &st); err != nil {
		return 0, err
	}
	if st.Mask&unix.STATX_DIOALIGN == 0 {
		return 0, errors.New("not stated")
	}
	return int64(max(st.Dio_mem_align, st.Dio_offset_align)), nil
}

// verifyDirect compares a direct read of the file's middle with a buffered one.
func verifyDirect(name string, align int64) error {
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	off := st.Size() / 2 / align * align
	mem, err := reserve(roundUp(align, 4096))
	if err != nil {
		return err
	}
	defer unix.Munmap(mem)
	buf := mem[:align]
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := unix.Pread(fd, buf, off)
	if err != nil {
		return err
	}
	want := make([]byte, n)
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.ReadAt(want, off); err != nil && err != io.EOF {
		return err
	}
	if string(want) != string(buf[:n]) {
		return errors.New("they return other bytes than buffered ones")
	}
	return nil
}
