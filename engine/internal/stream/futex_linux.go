package stream

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of linux/futex.h, for a word that no other process sees.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// sleepOn blocks while word is v, for at most d; 0: for ever. It may return
// early, so callers look again.
func sleepOn(word *atomic.Int32, v int32, d time.Duration) {
	var ts *unix.Timespec
	if d > 0 {
		t := unix.NsecToTimespec(d.Nanoseconds())
		ts = &t
	}
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(v), uintptr(unsafe.Pointer(ts)), 0, 0)
}

// wake ends up to n sleeps on word.
func wake(word *atomic.Int32, n int32) {
	_, _, _ = unix.RawSyscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, uintptr(n))
}
