package planner

import "github.com/bmoe/bmoe/planner/config"

// decline gives up on streaming for want of room. The configuration it leaves
// still runs: the file mapped, nothing held. It is priced as that.
func (st *planning) decline(why string) {
	st.plan.Declined = true
	st.stopStreaming("declined", "No plan fits this memory; the model would run mapped with nothing held.", why+"; the file is left mapped and nothing is held")
}

// streamKnobs mean nothing to a run that streams nothing.
var streamKnobs = []string{
	"dense-weights", "release-mmap", "repack", "cache-mb", "io-threads", "odirect", "overlap", "expert-prefetch",
	"prefill-slots", "prefill-slots-on-demand", "prefill-device", "prefill-best-effort",
}

// restore puts knobs that are not pinned back to their defaults and takes
// their decisions back.
func (st *planning) restore(knobs ...string) {
	for _, name := range knobs {
		p, ok := config.Lookup(name)
		if !ok || st.pinned(name) {
			continue
		}
		st.erase(name)
		_ = p.Set(&st.cfg, p.Get(&st.def)) // a default is always in range
	}
}

// stopStreaming undoes what only a streamed run needs.
func (st *planning) stopStreaming(topic, brief, reason string) {
	st.disarmLock()
	st.stream, st.cache, st.dense, st.slots = false, cacheChoice{}, denseChoice{}, slotChoice{}
	st.device = deviceChoice{}
	st.restore(streamKnobs...)
	st.chooseRepack()
	st.residentWidth()
	st.decide("moe-stream", "off", Decision{Provenance: Derived, Topic: topic, Brief: brief, Reason: reason})
}
