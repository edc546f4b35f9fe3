package probes

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// fallbackAlign is assumed where the kernel states no direct-read alignment:
// the largest logical sector in use.
const fallbackAlign = 4096

// fileDrive is a file on this machine.
type fileDrive struct {
	path   string
	file   *os.File // buffered, for questions
	where  place
	length int64
	stored int64
	offset int64 // direct-read alignments, bytes
	memory int64
	stated bool
	refuse error // why direct reads cannot be asked for
	host   *Host
}

func openDrive(path string) (drive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	d := &fileDrive{path: path, file: f, offset: fallbackAlign, memory: fallbackAlign, host: Local()}
	if err := d.describe(); err != nil {
		f.Close()
		return nil, err
	}
	return d, nil
}

func (d *fileDrive) describe() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.file.Fd()), &st); err != nil {
		return fmt.Errorf("stat %s: %w", d.path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%s is not a regular file", d.path)
	}
	d.length, d.stored = st.Size, st.Blocks*512
	where, err := placeOf(d.path)
	if err != nil {
		return err
	}
	d.where = where
	var sx unix.Statx_t
	err = unix.Statx(int(d.file.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &sx)
	if err != nil || sx.Mask&unix.STATX_DIOALIGN == 0 {
		d.offset = max(fallbackAlign, int64(st.Blksize))
		return nil
	}
	if sx.Dio_offset_align == 0 {
		d.refuse = errors.New("the file system says that it has no direct reads")
		return nil
	}
	d.stated = true
	d.offset, d.memory = int64(sx.Dio_offset_align), max(int64(sx.Dio_mem_align), 1)
	return nil
}

func (d *fileDrive) place() place         { return d.where }
func (d *fileDrive) size() (int64, int64) { return d.length, d.stored }
func (d *fileDrive) align() (int64, bool) { return d.offset, d.stated }
func (d *fileDrive) close()               { d.file.Close() }
func (d *fileDrive) forget(off, n int64)  { _ = forget(d.file, off, n) }
func (d *fileDrive) served() (int64, bool) {
	io, err := d.host.keyedFile("/proc/self/io")
	if err != nil {
		return 0, false
	}
	n, ok := io["read_bytes"]
	return n, ok
}

func (d *fileDrive) cached(off, n int64) (int64, bool) {
	held, err := residentBytes(d.file, off, n)
	return held, err == nil
}

func (d *fileDrive) mapped() (func(), error) {
	m, err := unix.Mmap(int(d.file.Fd()), 0, int(d.length), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(m, unix.MADV_RANDOM)
	return func() { _ = unix.Munmap(m) }, nil
}

func (d *fileDrive) lane(direct bool, most int64) (lane, error) {
	flags := unix.O_RDONLY | unix.O_CLOEXEC
	if direct {
		if d.refuse != nil {
			return nil, d.refuse
		}
		flags |= unix.O_DIRECT
	}
	fd, err := unix.Open(d.path, flags, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.path, err)
	}
	if !direct {
		_ = unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM)
	}
	unit := int64(1)
	if direct {
		unit = d.offset
	}
	buf, err := landing(landings * (most + 2*unit))
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("buffer of %s: %w", size(most), err)
	}
	return &fileLane{fd: fd, buf: buf, unit: unit, end: d.length}, nil
}

// hugePage is the huge page of most machines. One of another size only loses
// what it would have gained.
const hugePage = 2 << 20

// landings is how many reads of the largest size a lane's buffer takes before it
// is used again. Into memory that lies in the processor's cache a virtual drive
// copies faster than into an expert cache (measured: 8 %).
const landings = 6

var pageSize = int64(os.Getpagesize())

// landing is memory for reads to land in, of the pages the expert cache asks
// for: a direct read into scattered small pages is another, slower read where
// each page is translated and handed to the drive by itself.
func landing(n int64) ([]byte, error) {
	n = (n + hugePage - 1) / hugePage * hugePage
	mem, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	for i := int64(0); i < n; i += pageSize {
		mem[i] = 0 // there before the clock runs
	}
	return mem, nil
}

// fileLane reads whole alignment units around what it is asked for.
type fileLane struct {
	fd   int
	buf  []byte // page-aligned
	at   int64  // in buf, where the next read lands
	unit int64
	end  int64
}

func (l *fileLane) read(off, n int64) ([]byte, error) {
	if off < 0 || n <= 0 || off+n > l.end {
		return nil, fmt.Errorf("read of %d bytes at %d is outside the file", n, off)
	}
	from := off / l.unit * l.unit
	to := (off + n + l.unit - 1) / l.unit * l.unit
	if l.at+to-from > int64(len(l.buf)) {
		l.at = 0
	}
	want := l.buf[l.at : l.at+to-from : l.at+to-from]
	l.at += (to - from + pageSize - 1) / pageSize * pageSize
	got := int64(0)
	for got < off+n-from {
		m, err := unix.Pread(l.fd, want[got:], from+got)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if m == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		got += int64(m)
	}
	return want[off-from : off-from+n], nil
}

func (l *fileLane) close() {
	_ = unix.Munmap(l.buf)
	unix.Close(l.fd)
}
