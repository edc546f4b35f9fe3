package probes

import (
	"crypto/rand"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// anonHolder holds anonymous memory filled with random bytes.
type anonHolder struct {
	host   *Host
	chunks [][]byte
	noise  []byte
	before int64 // of this process in swap when it began, bytes
}

func newHolder(h *Host) (holder, error) {
	a := &anonHolder{host: h, noise: make([]byte, 1<<20)}
	if _, err := rand.Read(a.noise); err != nil {
		return nil, err
	}
	var err error
	a.before, err = a.swapped()
	return a, err
}

func (a *anonHolder) hold(n int64) error {
	m, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	a.chunks = append(a.chunks, m)
	for at := 0; at < len(m); at += len(a.noise) {
		copy(m[at:], a.noise)
	}
	return nil
}

func (a *anonHolder) swapped() (int64, error) {
	status, err := a.host.keyedFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	return status.need("/proc/self/status", "VmSwap")
}

func (a *anonHolder) lost() (int64, error) {
	now, err := a.swapped()
	return max(0, now-a.before), err
}

func (a *anonHolder) release() {
	for _, m := range a.chunks {
		_ = unix.Munmap(m)
	}
	a.chunks = nil
}

// offerSelf makes this process the first to go if memory runs out, so that a
// measurement never costs another program its life.
func offerSelf() error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("offer this process to the out-of-memory killer: %w", err)
	}
	return nil
}
