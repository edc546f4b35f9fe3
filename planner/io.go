package planner

import "fmt"

// chooseIO decides how experts are read: lanes, uncached or not, the mapping
// kept or not, overlapped or not, ahead of their routing or not.
func (st *planning) chooseIO() {
	if !st.stream {
		return
	}
	st.chooseLanes()
	st.chooseODirect()
	st.chooseReleaseMmap()
	st.chooseOverlap()
	st.choosePrefetch()
}

// chooseOverlap leaves reading behind the matmul on: it is never priced above
// waiting first, and nothing measured says otherwise.
func (st *planning) chooseOverlap() {
	st.keep("overlap", Decision{
		Provenance: Derived, Topic: "overlap",
		Brief:  "One part of an expert is read while the part before it is multiplied.",
		Reason: fmt.Sprintf("the default; hiding reads behind the matmul costs nothing in this model, and %s turns it off for comparison", offFlagOf("overlap")),
	})
}

// choosePrefetch leaves guessing the next layer's experts on: a run acts on its
// guesses only once they have been scored, and only as far as the drive has
// been seen to be idle. It is in no price; a ledger's correction learns it.
func (st *planning) choosePrefetch() {
	if !st.cfg.Overlap {
		st.decide("expert-prefetch", "off", Decision{
			Provenance: Derived, Topic: "expert-prefetch",
			Brief:  "No expert is read before its layer is routed.",
			Reason: "reads are waited for before the matmul, by hand; nothing is read while it computes",
		})
		return
	}
	st.keep("expert-prefetch", Decision{
		Provenance: Derived, Topic: "expert-prefetch",
		Brief:  "A likely expert of the next layer is read while the drive has nothing else to do.",
		Reason: fmt.Sprintf("the default; a run scores its guesses first and reads only what the drive's idle time holds, and %s turns it off for comparison", offFlagOf("expert-prefetch")),
	})
}
