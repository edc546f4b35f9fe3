package planner

import "fmt"

// A weight that is laid out anew is a copy in memory of our own. What it was
// made from stays in the file's mapping, which the kernel may drop, so both are
// there at once and one of them is held: where the original was not going to be
// held, the copy has to be charged.

// headCopy is what a head that is also the embedding table adds: it is laid out
// anew for the matmul and kept as it is for looking rows up. Unknown, it is
// charged as if it were all of the other weights.
func (st *planning) headCopy() int64 {
	if Ask(st.p.Model.TiedHead) == No {
		return 0
	}
	return st.p.Model.HeadTable.Or(st.m.dense)
}

// residentCopies is what a run that streams nothing holds if it repacks.
func (st *planning) residentCopies() int64 {
	held := st.m.routed + st.m.dense
	switch st.cfg.LoadMode {
	case "mmap+mlock": // the mapping is locked as well
		return 2 * held
	case "none", "mlock", "dio": // there is no mapping to look rows up in
		return held + st.headCopy()
	}
	return held
}

// copiesFit reports whether those copies may be held. Where the sizes are not
// known llama.cpp's own default stands.
func (st *planning) copiesFit() bool {
	return !st.m.known || !st.hold.known || st.residentCopies()+st.buffers.context+st.defaultCompute() <= st.hold.usable
}

// keepLayout leaves weights in the file's layout where copies of them would
// not fit: mapped, a model larger than memory runs; repacked, it ends the run.
func (st *planning) keepLayout() {
	held := st.residentCopies()
	if st.pinned("repack") {
		if st.cfg.Repack == "on" {
			st.note("over-budget", size(held-st.hold.usable), Operator,
				fmt.Sprintf("Weights laid out anew are held, %s of them, and %s may be.", size(held), size(st.hold.usable)),
				fmt.Sprintf("%s on copies every weight that has another layout into memory of its own; kept, because the caller set it", flagOf("repack")))
		}
		return
	}
	st.decide("repack", "off", Decision{
		Provenance: Derived, Topic: "repack-no-room",
		Brief:  fmt.Sprintf("Weights keep the file's layout: laid out anew they would be held, %s of them, and %s may be.", size(held), size(st.hold.usable)),
		Reason: "a repacked weight is a copy in memory of our own, which the kernel cannot drop as it drops the mapping",
	})
}

// streamedCopy is what repacking adds to what the other weights of a streamed
// run are charged with.
func (st *planning) streamedCopy() int64 {
	switch {
	case st.dense.held == 0:
		return st.m.dense // they were left to the mapping
	case st.cfg.DenseWeights == "mmap":
		return 0 // the mapping was charged, and only rows are read there now
	}
	return st.headCopy()
}

// repackByHand reports whether a caller has weights repacked, come what may.
func (st *planning) repackByHand() bool { return st.pinned("repack") && st.cfg.Repack == "on" }

// chargeCopy puts the copy of a caller's choice on the ledger before the cache
// is sized.
func (st *planning) chargeCopy() {
	if st.repackByHand() {
		st.addCopy(st.streamedCopy())
	}
}

func (st *planning) addCopy(bytes int64) {
	st.dense.held += bytes
	if st.dense.locked > 0 {
		st.dense.locked += bytes
	}
}

// cacheBesideCopy is the cache that is left when repacking has what it needs,
// or why it cannot have it.
func (st *planning) cacheBesideCopy(extra int64) (cache int64, why string) {
	cache = st.cache.bytes
	if extra == 0 {
		return cache, ""
	}
	free := st.freeForCopy()
	short := extra - free
	if st.locks.shared && st.dense.locked > 0 && st.cache.locked > 0 && st.cache.locked == cache {
		short = max(short, extra-max(0, st.lockLeft()-cache)) // the copy is locked from the same total
	}
	if short > 0 {
		cache = wholeMiB(cache - short)
	}
	switch {
	case short > 0 && (st.pinned("cache-mb") || cache < st.floor()):
		return 0, fmt.Sprintf("a copy of %s finds no room", size(extra))
	case st.slots.inTurn && st.slots.bytes > cache+max(0, free-extra):
		return 0, fmt.Sprintf("a copy of %s leaves the cache too small for a prompt's turn", size(extra))
	case st.dense.locked > 0 && st.locks.storeKnown && st.device.locked+st.dense.locked+extra > st.locks.storeBytes:
		return 0, fmt.Sprintf("a copy of %s would cost the other weights their lock", size(extra))
	}
	return cache, ""
}

// freeForCopy is what nothing else holds beside the cache.
func (st *planning) freeForCopy() int64 {
	free := st.leftForCache() - st.cache.bytes - st.cache.staging
	if !st.slots.inTurn && !st.slotsHeldByPin() {
		free -= st.slots.bytes
	}
	return max(0, free)
}

// takeCopy charges the copy and gives the cache what is left.
func (st *planning) takeCopy(extra, cache int64) {
	st.addCopy(extra)
	st.cache.locked = min(st.cache.locked, cache, max(0, st.lockLeft()))
	if cache == st.cache.bytes {
		return
	}
	st.cache.left -= extra
	st.cache.bytes = cache
	st.decideCache("cache", st.hold.prov,
		fmt.Sprintf("A cache of %s, %s of the experts; %s of its room is a copy of the output head's.", size(cache), percent(float64(cache)/float64(max(1, st.m.whole()))), size(extra)),
		st.cacheReason())
}
