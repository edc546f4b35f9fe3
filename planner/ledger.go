package planner

import "fmt"

// The ceilings a ledger row is charged to.
const (
	CeilingHoldable = "holdable" // what the process may hold
	CeilingLockable = "lockable" // what it may hold reclaim-exempt
	CeilingInTurn   = "in-turn"  // held while the cache yields its room
	CeilingLimit    = "limit"    // the ceilings themselves
)

// writeLedger lists everything the run holds for its whole length, against
// both ceilings. Rows under a ceiling and its free row add up to its limit.
func (st *planning) writeLedger() {
	if st.p.Buffers.Context.OK() || st.buffers.context > 0 {
		st.row("context", st.buffers.context, CeilingHoldable, st.buffers.kvFrom)
	}
	if st.p.Buffers.Compute.OK() {
		st.row("compute buffers", st.buffers.compute, CeilingHoldable, fmt.Sprintf("%d tokens wide", st.width()))
	}
	switch {
	case st.plan.Declined:
	case st.stream:
		st.streamRows()
	case st.plan.Regime == RegimeFits:
		st.row("model", st.m.routed+st.m.dense, CeilingHoldable, "resident")
	}
	if !st.hold.known {
		return
	}
	st.row("free", st.hold.usable-st.charged(CeilingHoldable), CeilingHoldable, "")
	st.row("may be held", st.hold.usable, CeilingLimit, CeilingHoldable)
	st.row("margin", st.hold.total-st.hold.usable, CeilingLimit, "kept free")
	st.lockRows()
}

func (st *planning) streamRows() {
	if st.device.held > 0 {
		st.row("prefill device", st.device.held, CeilingHoldable, st.device.dev.Name)
	}
	if st.dense.held > 0 {
		st.row("other weights", st.dense.held, CeilingHoldable, st.cfg.DenseWeights)
	}
	if st.cache.known {
		if st.cache.staging > 0 {
			st.row("read staging", st.cache.staging, CeilingHoldable, "one layer's picks")
		}
		note := ""
		if st.cache.request {
			note = "lock requested at run time, not counted"
		}
		st.row("expert cache", st.cache.bytes, CeilingHoldable, note)
	}
	switch {
	case st.slots.bytes > 0 && st.slots.inTurn:
		st.row("prefill slots", st.slots.bytes, CeilingInTurn, "in turn with the cache")
	case st.slots.bytes > 0:
		st.row("prefill slots", st.slots.bytes, CeilingHoldable, "kept for the session")
	}
}

// lockRows is the second account, where there is one with a total. A store
// that states none is bounded by what may be held alone.
func (st *planning) lockRows() {
	if !st.stream {
		return
	}
	total, known := st.lockTotal()
	if !known {
		if st.cache.request {
			st.row("may be locked", 0, CeilingLimit, "unmeasured")
		}
		return
	}
	if st.device.locked > 0 {
		st.row("prefill device", st.device.locked, CeilingLockable, "")
	}
	if st.dense.locked > 0 && st.denseCounted() {
		st.row("other weights", st.dense.locked, CeilingLockable, "")
	}
	if st.cache.locked > 0 {
		st.row("expert cache", st.cache.locked, CeilingLockable, "")
	}
	st.row("free", total-st.charged(CeilingLockable), CeilingLockable, "")
	st.row("may be locked", total, CeilingLimit, CeilingLockable)
}

// lockTotal is the lockable ceiling: one total where the store and locks in
// place share it, the sum where they do not.
func (st *planning) lockTotal() (int64, bool) {
	v := &st.locks
	switch {
	case v.shared:
		total := v.inBytes
		if v.storeKnown {
			total = max(total, v.storeBytes)
		}
		return total, v.inKnown || v.storeKnown
	case v.storeKnown && v.inKnown:
		return v.storeBytes + v.inBytes, true
	case v.storeKnown:
		return v.storeBytes, true
	}
	return v.inBytes, v.inKnown
}

// denseCounted reports whether a pinned dense set draws on the total.
func (st *planning) denseCounted() bool { return st.locks.shared || st.locks.storeKnown }

func (st *planning) row(name string, bytes int64, ceiling, note string) {
	st.plan.Ledger = append(st.plan.Ledger, LedgerRow{Row: name, Bytes: bytes, Ceiling: ceiling, Note: note})
}

func (st *planning) charged(ceiling string) int64 {
	var sum int64
	for _, r := range st.plan.Ledger {
		if r.Ceiling == ceiling {
			sum += r.Bytes
		}
	}
	return sum
}
