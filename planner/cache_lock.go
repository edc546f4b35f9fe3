package planner

import "fmt"

// lockLeft is what can still be locked in place beside a pinned dense set and
// a device whose buffers are reclaim-exempt.
func (st *planning) lockLeft() int64 {
	left := st.locks.inBytes - st.device.locked
	if st.locks.shared {
		left -= st.dense.locked
	}
	return left
}

// takenBack reports whether pressure here takes pages from a process that goes
// on living; only then does a lock protect anything.
func (st *planning) takenBack() bool {
	r, ok := st.p.Memory.Reclaim.Get()
	return !ok || r == ReclaimCompress || r == ReclaimSwap
}

// lockCache sizes the cache to what can be locked where that is at least a
// token cycle, and arms the stepping down that goes with it. Where the ceiling
// could not be read and nothing rules a lock out, the lock is asked for at run
// time and the size stays that of ordinary memory.
func (st *planning) lockCache() {
	for _, knob := range []string{"cache-pin", "cache-pin-fit"} {
		if st.pinned(knob) {
			if st.cfg.CachePin && st.locks.inKnown {
				st.cache.locked = min(st.cache.bytes, max(0, st.lockLeft()))
			}
			st.cache.request = st.cfg.CachePin && !st.locks.inKnown
			return
		}
	}
	if !st.takenBack() || st.cache.bytes < st.m.cycle || st.m.cycle == 0 {
		return
	}
	if st.cfg.CacheMB >= 0 && st.pinned("cache-mb") && (!st.locks.inKnown || st.lockLeft() < st.cache.bytes) {
		// A lock that steps down would shrink what the caller set.
		st.disabled("cache-lock", "cache-mb")
		return
	}
	switch {
	case st.locks.inKnown && st.lockLeft() >= st.m.cycle:
		st.cache.bytes = min(st.cache.bytes, st.lockLeft())
		st.cache.locked = st.cache.bytes
		st.armLock(Measured, fmt.Sprintf("The cache is locked in memory; %s can be.", size(st.lockLeft())),
			fmt.Sprintf("%s can be locked in place after a margin of %s and what else is locked, at least the token cycle of %s, so the cache is sized to it and steps down if less is granted", size(st.lockLeft()), percent(st.pol.LockMargin), size(st.m.cycle)))
	case st.locks.inKnown:
		st.note("cache-lock", size(max(0, st.lockLeft())), Measured,
			fmt.Sprintf("The cache is ordinary memory: only %s of it could be locked.", size(max(0, st.lockLeft()))),
			fmt.Sprintf("what can be locked in place is under the token cycle of %s, which grants no lock worth having; the cache keeps its full budget", size(st.m.cycle)))
	case !st.locks.ruledOut && st.p.Memory.Reclaim.OK():
		st.cache.request = true
		st.armLock(Unprobed, "A lock on the cache is asked for when it is loaded; what the system grants is not known.",
			"the ceiling on locking in place could not be read and no known bound rules out a token cycle; the size stays that of ordinary memory, and the lock is a request that steps down to what is granted")
	}
}

func (st *planning) armLock(prov Provenance, brief, reason string) {
	st.decide("cache-pin", "on", Decision{Provenance: prov, Topic: "cache-lock", Brief: brief, Reason: reason})
	st.decide("cache-pin-fit", "on", Decision{
		Provenance: prov, Topic: "cache-lock",
		Brief: "If less can be locked than asked for, the cache shrinks to it.", Reason: reason,
	})
}

// disarmLock takes the lock back when there is no cache to lock.
func (st *planning) disarmLock() {
	st.cache.locked, st.cache.request = 0, false
	st.restore("cache-pin", "cache-pin-fit")
}
