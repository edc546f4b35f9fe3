package stream

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arena is a group's memory: one run of slots per projection. Pages are
// committed when a slot is first filled and stay.
type arena struct {
	g         *group
	mem       []byte
	base      [numProj]uintptr // address of slot 0
	off       [numProj]int64   // its offset in mem
	freeSlots []int32
	open      int // slots in use or free; the rest has no memory now
	limit     int // slots that may be open: the budget
	pinned    int // slots locked in memory, from slot 0
}

func newArena(g *group) (*arena, error) {
	a := &arena{g: g, open: g.slots, limit: g.slots}
	var size int64
	for _, p := range g.proj {
		a.off[p] = size
		size += roundUp(int64(g.most)*g.stride[p], 4096)
	}
	mem, err := reserve(size)
	if err != nil {
		return nil, fmt.Errorf("reserving %d MiB for the expert cache (--cache-mb): %w", size>>20, err)
	}
	a.mem = mem
	for _, p := range g.proj {
		a.base[p] = address(mem) + uintptr(a.off[p])
	}
	a.freeSlots = make([]int32, g.slots)
	for i := range a.freeSlots {
		a.freeSlots[i] = int32(g.slots - 1 - i) // pop takes slot 0 first
	}
	return a, nil
}

// slot is the memory of one expert's projection.
func (a *arena) slot(proj int, i int32) []byte {
	from := a.off[proj] + int64(i)*a.g.stride[proj]
	return a.mem[from : from+a.g.stride[proj] : from+a.g.stride[proj]]
}

func (a *arena) take() (int32, bool) {
	n := len(a.freeSlots)
	if n == 0 {
		return -1, false
	}
	i := a.freeSlots[n-1]
	a.freeSlots = a.freeSlots[:n-1]
	return i, true
}

func (a *arena) release(i int32) { a.freeSlots = append(a.freeSlots, i) }

func (a *arena) free() error {
	mem := a.mem
	a.mem = nil
	if mem == nil {
		return nil
	}
	return unix.Munmap(mem)
}

// reserve maps anonymous memory that is committed as it is touched.
func reserve(size int64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	// Fewer pages to fault in, to pin for a direct read and to translate. Where
	// the kernel has none to give, ordinary pages it is.
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	return mem, nil
}

func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }
