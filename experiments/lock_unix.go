//go:build unix

package experiments

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes an exclusive advisory lock and says whether it got it.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
