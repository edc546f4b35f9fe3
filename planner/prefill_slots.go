package planner

import "fmt"

// slotChoice is the layers of experts a prompt is read into.
type slotChoice struct {
	bytes  int64 // of all slots together
	inTurn bool  // held only while a prompt runs, the cache yielding its room
	narrow bool  // no whole layer fits: prompts go through in narrow graphs
}

// choosePrefillSlots takes two slots where they fit (one layer loads while the
// one before it computes), one where only one does. Slots and cache are never
// busy at once, so slots that do not fit beside the cache are held in turn with
// it. Where not even one fits, prompts are computed in graphs so narrow that
// their picks do.
func (st *planning) choosePrefillSlots() {
	if !st.stream || !st.hold.known || !st.m.known || st.m.layer == 0 {
		return
	}
	free := max(0, st.leftForCache()-st.cache.bytes-st.cache.staging)
	if st.slotsHeldByPin() {
		st.slots.bytes = int64(st.cfg.PrefillSlots) * st.m.layer
		return
	}
	room := free + st.cache.bytes
	n := int64(2)
	if st.pinned("prefill-slots") {
		n = int64(st.cfg.PrefillSlots)
	} else if 2*st.m.layer > room || st.device.most == 1 {
		n = 1
	}
	if n*st.m.layer > room && !st.pinned("prefill-slots") {
		st.narrowPrompt(room)
		return
	}
	st.slots.bytes = n * st.m.layer
	st.slots.inTurn = st.slots.bytes > free
	if st.pinned("prefill-slots-on-demand") {
		st.slots.inTurn = st.cfg.SlotsOnDemand
	}
	text := map[int64]string{1: "one layer of experts", 2: "two layers of experts"}[n]
	st.decide("prefill-slots", itoa(n), Decision{
		Provenance: Derived, Topic: "prefill-slots",
		Brief:  fmt.Sprintf("Prompts are read into %s, %s.", text, size(st.slots.bytes)),
		Reason: fmt.Sprintf("a layer's experts are %s; %s is there for slots (free %s, cache %s); two slots read one layer while the one before it computes", size(st.m.layer), size(room), size(free), size(st.cache.bytes)),
	})
	st.decide("prefill-slots-on-demand", onOff(st.slots.inTurn), Decision{
		Provenance: Derived, Topic: "prefill-slots",
		Brief:  st.inTurnBrief(free),
		Reason: fmt.Sprintf("slots of %s against %s free beside the cache; slots and cache are never busy at once", size(st.slots.bytes), size(free)),
	})
}

func (st *planning) inTurnBrief(free int64) string {
	if st.slots.inTurn {
		return fmt.Sprintf("That room is the cache's between prompts; only %s is free beside it.", size(free))
	}
	return fmt.Sprintf("That room is kept for the session; %s is free beside the cache.", size(free))
}

// narrowPrompt finds the widest graph whose picks fit the cache's own slots,
// or, without a cache, those that one token's picks are read into.
func (st *planning) narrowPrompt(room int64) {
	st.slots.narrow = true
	per := max(1, st.m.layer/max(1, st.m.experts))
	slots := max(st.cache.bytes, st.cache.staging)
	width := int64(1)
	for w := int64(2); w*st.m.used*per <= slots && w <= st.width(); w *= 2 {
		width = w
	}
	if st.pinned("ubatch") {
		st.slots.bytes = st.m.layer
		st.note("over-budget", size(st.m.layer-room), Operator,
			fmt.Sprintf("A prompt needs %s more than is left.", size(st.m.layer-room)),
			fmt.Sprintf("no whole layer of experts (%s) fits and %s fixes the graph's width", size(st.m.layer), flagOf("ubatch")))
		return
	}
	st.decide("ubatch", itoa(width), Decision{
		Provenance: Derived, Topic: "ubatch-narrow",
		Brief:  fmt.Sprintf("%d tokens per pass: a wider one could need a whole layer of experts, %s, and %s is left.", width, size(st.m.layer), size(room)),
		Reason: fmt.Sprintf("no prefill slot fits (%s a layer, %s left), so a prompt is computed in graphs of %d tokens, whose picks fit the slots of a decoded token's", size(st.m.layer), size(room), width),
	})
	// What was projected is all layers' buffers; a placement may leave fewer here.
	if at, _ := computeAt(st.p.Buffers.Compute.Value, width); st.p.Buffers.Compute.OK() {
		st.buffers.compute = min(st.buffers.compute, at)
	}
}
