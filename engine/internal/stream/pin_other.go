//go:build !linux

package stream

import "golang.org/x/sys/unix"

func mlock(mem []byte) error {
	if len(mem) == 0 {
		return nil
	}
	return unix.Mlock(mem)
}
