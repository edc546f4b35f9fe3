package probes

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// lockTest locks n bytes in steps until the kernel refuses, and gives them
// back. A refusal for lack of permission or limit is no error; the amount is.
func lockTest(n int64) (int64, error) {
	if n <= 0 {
		return 0, nil
	}
	m, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNoTrial, err)
	}
	defer unix.Munmap(m)
	var granted int64
	for granted < n {
		step := min(lockStep, n-granted)
		err := unix.Mlock(m[granted : granted+step])
		if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN) {
			return granted, nil
		}
		if err != nil {
			return granted, err
		}
		granted += step
	}
	return granted, nil
}
