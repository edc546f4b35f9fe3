package probes

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cachedFraction is the share of the files' bytes that the page cache holds;
// -1 when the kernel does not tell.
func cachedFraction(paths []string) float64 {
	var held, total int64
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			return -1
		}
		st, err := f.Stat()
		var n int64
		if err == nil {
			n, err = residentBytes(f, 0, st.Size())
		}
		f.Close()
		if err != nil {
			return -1
		}
		held, total = held+n, total+st.Size()
	}
	if total == 0 {
		return -1
	}
	return float64(held) / float64(total)
}

// residentBytes counts the bytes of a range that the page cache holds. Kernels
// hide this from those who may not write the file; some by an error, older
// ones by claiming that all of it is there, so they are not asked.
func residentBytes(f *os.File, off, n int64) (int64, error) {
	if n == 0 {
		return 0, nil
	}
	if err := mayKnowCache(f); err != nil {
		return 0, err
	}
	page := int64(os.Getpagesize())
	var stat unix.Cachestat_t
	err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Off: uint64(off), Len: uint64(n)}, &stat, 0)
	if err == nil {
		return min(n, int64(stat.Cache)*page), nil
	}
	if !errors.Is(err, unix.ENOSYS) {
		return 0, err
	}
	return mincoreBytes(f, off, n, page)
}

func mayKnowCache(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	euid := os.Geteuid()
	if euid == 0 || uint32(euid) == st.Uid {
		return nil
	}
	return unix.Faccessat(unix.AT_FDCWD, f.Name(), unix.W_OK, unix.AT_EACCESS)
}

// mincoreBytes asks through a mapping, for kernels before 6.5.
func mincoreBytes(f *os.File, off, n, page int64) (int64, error) {
	const window = 1 << 30
	var held int64
	for at := off / page * page; at < off+n; at += window {
		length := min(window, off+n-at)
		m, err := unix.Mmap(int(f.Fd()), at, int(length), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 0, err
		}
		pages, err := mincore(m, page)
		unix.Munmap(m)
		if err != nil {
			return 0, err
		}
		held += pages * page
	}
	return min(n, held), nil
}

// mincore counts the resident pages of a mapping.
func mincore(m []byte, page int64) (int64, error) {
	vec := make([]byte, (int64(len(m))+page-1)/page)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		return 0, errno
	}
	var n int64
	for _, v := range vec {
		n += int64(v & 1)
	}
	return n, nil
}

// forget drops a range from the page cache where it is clean and unmapped.
func forget(f *os.File, off, n int64) error {
	return unix.Fadvise(int(f.Fd()), off, n, unix.FADV_DONTNEED)
}
