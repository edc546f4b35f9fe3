package planner

import "fmt"

// chooseIO decides how experts are read: lanes, uncached or not, the mapping
// kept or not, overlapped or not.
func (st *planning) chooseIO() {
	if !st.stream {
		return
	}
	st.chooseLanes()
	st.chooseODirect()
	st.chooseReleaseMmap()
	st.chooseOverlap()
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
