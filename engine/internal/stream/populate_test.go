package stream

import (
	"encoding/binary"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// committed counts the pages of the open slots that have memory.
func committed(t *testing.T, s *Stream) (have, all int) {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := int64(os.Getpagesize())
	for _, span := range openSlots(s.arenas) {
		for off := int64(0); off < int64(len(span)); off += page {
			var entry [8]byte
			if _, err := f.ReadAt(entry[:], (int64(address(span))+off)/page*8); err != nil {
				t.Fatal(err)
			}
			all++
			if binary.LittleEndian.Uint64(entry[:])>>63 == 1 {
				have++
			}
		}
	}
	return have, all
}

func populated(t *testing.T, cfg Config) *Stream {
	t.Helper()
	// Projections of many pages: more than one step in all.
	m := newFake(t, cfg, 1, [][]int64{{1 << 20, 1 << 20, 1 << 20}})
	t.Cleanup(func() { _ = m.s.Close() })
	return m.s
}

func populateConfig() Config {
	cfg := small(false)
	cfg.Experts, cfg.BudgetBytes = 8, 48<<20
	return cfg
}

func TestPopulateCommitsTheBudget(t *testing.T) {
	skipWithoutPopulate(t)
	s := populated(t, populateConfig())
	if have, _ := committed(t, s); have != 0 {
		t.Fatalf("%d pages committed before anything asked for them", have)
	}
	s.Populate(func() int64 { return 1 << 40 })
	s.populator.done.Wait()
	if have, all := committed(t, s); have != all || all == 0 {
		t.Errorf("%d of %d pages committed", have, all)
	}
}

func TestPopulateStopsWhereThereIsNoRoom(t *testing.T) {
	skipWithoutPopulate(t)
	s := populated(t, populateConfig())
	room := int64(populateRoom + populateStep)
	s.Populate(func() int64 { r := room; room -= populateStep; return r })
	s.populator.done.Wait()
	have, all := committed(t, s)
	if step := populateStep / os.Getpagesize(); have == 0 || have > step || have == all {
		t.Errorf("room for one step of %d pages: %d of %d committed", step, have, all)
	}
}

// A cache that gives memory to the prompt's slots gets it back committed.
func TestPopulateAfterReclaim(t *testing.T) {
	skipWithoutPopulate(t)
	s := populated(t, populateConfig())
	s.Populate(func() int64 { return 1 << 40 })
	s.yield(24 << 20)
	after := s.arenas[0].open
	s.reclaim()
	s.populator.done.Wait()
	have, all := committed(t, s)
	if have != all || after >= s.arenas[0].open {
		t.Errorf("%d slots while it yielded, %d after; %d of %d pages committed", after, s.arenas[0].open, have, all)
	}
}

func skipWithoutPopulate(t *testing.T) {
	t.Helper()
	mem, err := reserve(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	if err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); err != nil {
		t.Skipf("this kernel (before Linux 5.14) commits no memory ahead: %v", err)
	}
}
