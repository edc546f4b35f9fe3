package stream

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const mlockOnFault = 1

// mlock locks pages as they are touched, so that an empty cache costs nothing;
// a kernel without that call locks, and commits, them at once.
func mlock(mem []byte) error {
	if len(mem) == 0 {
		return nil
	}
	_, _, errno := unix.Syscall(unix.SYS_MLOCK2, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(len(mem)), mlockOnFault)
	if errno == unix.ENOSYS {
		return unix.Mlock(mem)
	}
	if errno != 0 {
		return errno
	}
	return nil
}
