package planner

import "fmt"

// denseChoice is where the weights that are not routed experts live.
type denseChoice struct {
	held   int64 // charged to what may be held
	locked int64 // of that, reclaim-exempt
}

// chooseDense decides from what a reclaim does here. Every token reads the
// dense set whole, so a mapping the kernel may drop is faulted back page by
// page; a fatal limit widens the margin and does not leave the set mapped. It is
// pinned whole or not at all: a part left out is what every token waits for.
func (st *planning) chooseDense() {
	st.locks = st.viewLocks()
	if !st.stream {
		return
	}
	defer st.chargeCopy()
	st.dense.held = st.m.dense
	if st.pinned("dense-weights") {
		st.disabled("dense-policy", "dense-weights")
		st.dense.locked = st.pinnedDenseLock()
		return
	}
	reclaim, known := st.p.Memory.Reclaim.Get()
	switch {
	case st.pinned("release-mmap") && st.cfg.ReleaseMmap && (st.plan.Regime == RegimeOversized || !known || !st.hold.known):
		st.decide("dense-weights", "anon", Decision{
			Provenance: Derived, Topic: "dense-anon",
			Brief:  fmt.Sprintf("The %s read for every token are copied, because you want the file unmapped.", size(st.m.dense)),
			Reason: fmt.Sprintf("%s leaves no mapping to read weights from", flagOf("release-mmap")),
		})
	case st.plan.Regime == RegimeOversized:
		st.dense.held = 0
		st.decide("dense-weights", "mmap", Decision{
			Provenance: Derived, Topic: "dense-mapped",
			Brief:  fmt.Sprintf("The %s read for every token stay in the file's mapping; they do not fit in memory.", size(st.m.dense)),
			Reason: fmt.Sprintf("the dense set's %s exceed what is left of %s, so the kernel keeps what it can of the mapping", size(st.m.dense), size(st.hold.usable)),
		})
	case !known || !st.hold.known:
		st.keep("dense-weights", Decision{
			Provenance: Unprobed, Topic: "dense-mapped",
			Brief:  "The weights read for every token stay mapped, the default; what memory pressure does here is not known.",
			Reason: "owed: what happens to anonymous memory under pressure (ended, compressed, swapped or nothing)",
		})
	case reclaim == ReclaimCompress && st.locks.holdsDense(st.toPin()):
		st.dense.locked = st.m.dense // a copy comes with chargeCopy
		st.decide("dense-weights", "pinned", Decision{
			Provenance: Measured, Topic: "dense-pin",
			Brief:  fmt.Sprintf("The %s read for every token are held where the system cannot take them back.", size(st.m.dense)),
			Reason: fmt.Sprintf("idle memory is compressed here, and a reclaim-exempt store takes the set whole (%s of %s)", size(st.toPin()), st.storeText()),
		})
	default:
		st.decide("dense-weights", "anon", Decision{
			Provenance: Measured, Topic: "dense-anon",
			Brief:  fmt.Sprintf("The %s read for every token are copied into memory of our own; pressure here means %s.", size(st.m.dense), reclaimText(st.p.Memory.Reclaim)),
			Reason: "every token reads the dense set whole, and the kernel owes a mapping nothing: pressure here means " + reclaimText(st.p.Memory.Reclaim),
		})
		st.explainNoPin(reclaim)
	}
}

func (st *planning) pinnedDenseLock() int64 {
	if st.cfg.DenseWeights == "mmap" && st.plan.Regime == RegimeOversized {
		st.dense.held = 0
	}
	if st.cfg.DenseWeights != "pinned" {
		return 0
	}
	if short := st.m.dense - st.locks.storeBytes; st.locks.storeKnown && short > 0 {
		st.note("over-budget", size(short), Operator,
			fmt.Sprintf("Protecting the weights read for every token is %s short; what is refused will be ordinary memory.", size(short)),
			fmt.Sprintf("%s pinned asks for %s and %s can be locked; kept, because the caller set it", flagOf("dense-weights"), size(st.m.dense), size(st.locks.storeBytes)))
	}
	return st.m.dense
}

// toPin is the other weights with the copy of a caller who has them repacked.
func (st *planning) toPin() int64 {
	if st.repackByHand() {
		return st.m.dense + st.headCopy()
	}
	return st.m.dense
}

// explainNoPin says how far short a store fell that could have held the set.
func (st *planning) explainNoPin(reclaim Reclaim) {
	if reclaim != ReclaimCompress || st.locks.store != Yes {
		return
	}
	short := st.toPin() - st.locks.storeBytes
	st.note("dense-pin", size(short), Measured,
		fmt.Sprintf("The weights read for every token are ordinary memory: protecting them is %s short.", size(short)),
		fmt.Sprintf("the reclaim-exempt store holds %s after a margin of %s and the set is %s; a set pinned in part is reclaimed from the part that was refused", size(st.locks.storeBytes), percent(st.pol.LockMargin), size(st.toPin())))
}

func (st *planning) storeText() string {
	if !st.locks.storeKnown {
		return "a store that states no total"
	}
	return size(st.locks.storeBytes)
}
