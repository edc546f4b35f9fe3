package planner

// decline gives up on streaming for want of room. The configuration it leaves
// still runs: the file mapped, nothing held. It is priced as that.
func (st *planning) decline(why string) {
	st.plan.Declined = true
	st.stopStreaming("declined", "No plan fits this memory; the model would run mapped with nothing held.", why+"; the file is left mapped and nothing is held")
}

// stopStreaming undoes what only a streamed run needs.
func (st *planning) stopStreaming(topic, brief, reason string) {
	st.disarmLock()
	st.stream, st.cache, st.dense, st.slots = false, cacheChoice{}, denseChoice{}, slotChoice{}
	st.dropDevice()
	for _, knob := range []string{"dense-weights", "cache-mb"} {
		st.erase(knob)
	}
	if !st.pinned("dense-weights") {
		st.cfg.DenseWeights = st.def.DenseWeights
	}
	if !st.pinned("cache-mb") {
		st.cfg.CacheMB = st.def.CacheMB
	}
	st.residentWidth()
	st.decide("moe-stream", "off", Decision{Provenance: Derived, Topic: topic, Brief: brief, Reason: reason})
}
