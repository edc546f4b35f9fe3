package stream

import "golang.org/x/sys/unix"

// lockStep is how much of an arena is locked at a time.
const lockStep = 8 << 20

// pin locks the arenas in place, a step of each in turn. When the system stops
// granting part way, fit shrinks the cache to what is locked; without fit the
// budget stays and pinning ends. A total that would not hold one token's
// experts is no lock worth having: nothing stays locked and the cache keeps its
// budget. What was refused is counted.
func (s *Stream) pin(fit bool) {
	locked := make([]int, len(s.arenas))
	refused := false
	for more := true; more && !refused; {
		more = false
		for i, a := range s.arenas {
			if locked[i] == a.limit || refused {
				continue
			}
			n := min(locked[i]+max(int(lockStep/a.g.slotBytes), 1), a.limit)
			if !a.lock(locked[i], n) {
				refused = true
				break
			}
			locked[i], a.pinned, more = n, n, true
		}
	}
	var got, want int64
	for i, a := range s.arenas {
		got += int64(locked[i]) * a.g.slotBytes
		want += int64(a.limit) * a.g.slotBytes
	}
	s.stats.CacheLockedBytes, s.stats.CachePinRefusedBytes = got, want-got
	if !refused {
		return
	}
	if got < s.tokenCycle() {
		s.unpin()
		return
	}
	if fit {
		s.fitTo(locked)
	}
}

// fitTo shrinks every group to its locked slots, never below one batch.
func (s *Stream) fitTo(locked []int) {
	for i, a := range s.arenas {
		a.limit = max(locked[i], min(s.cfg.Used, a.limit))
		s.shrink(i, a.limit)
	}
	s.settleBudget()
}

func (s *Stream) unpin() {
	for _, a := range s.arenas {
		_ = unix.Munlock(a.mem)
		a.pinned = 0
	}
	s.stats.CacheLockedBytes = 0
}

// tokenCycle is the slot memory one token's experts take.
func (s *Stream) tokenCycle() int64 {
	var n int64
	for _, a := range s.arenas {
		n += int64(len(a.g.layers)) * a.g.slotBytes * int64(s.cfg.Used)
	}
	return n
}

// lock locks the slots from up to to, as their pages are committed, and
// reports whether the system granted it.
func (a *arena) lock(from, to int) bool {
	for _, p := range a.g.proj {
		lo := (a.off[p] + int64(from)*a.g.stride[p]) / 4096 * 4096
		hi := roundUp(a.off[p]+int64(to)*a.g.stride[p], 4096)
		if mlock(a.mem[lo:min(hi, int64(len(a.mem)))]) != nil {
			return false
		}
	}
	return true
}
