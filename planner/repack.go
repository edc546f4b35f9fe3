package planner

import "fmt"

// chooseRepack prices repacking: weights the CPU multiplies faster once they
// are laid out anew, against laying out again every expert that was missed.
// It changes bits against unrepacked weights and is what stock llama.cpp does.
func (st *planning) chooseRepack() {
	plain, okPlain := st.p.Host.Narrow.Get()
	packed, okPacked := st.p.Host.NarrowRepack.Get()
	if !st.stream {
		st.residentRepack(plain, packed, okPlain && okPacked)
		return
	}
	if st.pinned("repack") {
		st.disabled("repack", "repack")
		return
	}
	if !okPlain || !okPacked || !st.p.Overheads.RepackRate.OK() || !st.cache.known {
		st.keep("repack", Decision{
			Provenance: Unprobed, Topic: "repack",
			Brief: "Whether to lay weights out anew is left to the default; its price was not measured.", Reason: "owed: the one-token matmul with and without repacked weights, and the rate of repacking; " + st.p.Host.NarrowRepack.Reason,
		})
		return
	}
	extra := st.streamedCopy()
	cache, why := st.cacheBesideCopy(extra)
	if why != "" {
		st.decide("repack", "off", Decision{
			Provenance: Derived, Topic: "repack-no-room",
			Brief:  "Weights keep the file's layout: " + why + ".",
			Reason: "a repacked weight is a copy in memory of our own; " + why + " beside what else is held",
		})
		return
	}
	miss := 1 - st.creditedHits(st.cache.bytes)
	off := st.streamTerms(miss, plain, false)
	on := st.streamTerms(1-st.creditedHits(cache), packed, true)
	if !off.known || !on.known {
		st.keep("repack", Decision{
			Provenance: Unprobed, Topic: "repack",
			Brief: "Whether to lay weights out anew is left to the default; a token has no price.", Reason: "owed: " + off.missing + on.missing,
		})
		return
	}
	figures := fmt.Sprintf("a token costs %s repacked and %s not, at a hit rate of %s, %s against %s of weights, repacking at %s",
		seconds(on.total()), seconds(off.total()), percent(1-miss), rate(packed), rate(plain), rate(st.p.Overheads.RepackRate.Value))
	d := Decision{Provenance: Measured, Topic: "repack", Reason: figures + "; the bits are those of stock llama.cpp's own layout, not those of the file's"}
	d.Brief = fmt.Sprintf("Weights keep the file's layout: a token takes %s so, %s laid out anew.", seconds(off.total()), seconds(on.total()))
	choice := "off"
	if on.total() < off.total() {
		choice = "on"
		d.Brief = fmt.Sprintf("Weights are laid out anew for this CPU: a token takes %s so, %s otherwise.", seconds(on.total()), seconds(off.total()))
		st.takeCopy(extra, cache)
	}
	st.decide("repack", choice, d)
}

// residentRepack keeps llama.cpp's own choice, which is to repack, unless the
// copies do not fit or the probe saw it lose.
func (st *planning) residentRepack(plain, packed float64, known bool) {
	if !st.copiesFit() {
		st.keepLayout()
		return
	}
	if !known || packed >= plain || st.plan.Regime == RegimeUnknown || st.plan.Regime == RegimeDense {
		return
	}
	st.decide("repack", "off", Decision{
		Provenance: Measured, Topic: "repack",
		Brief:  fmt.Sprintf("Weights keep the file's layout; laid out anew they are slower here (%s against %s).", rate(packed), rate(plain)),
		Reason: "the one-token matmul in both layouts",
	})
}

// repacked reports whether the run multiplies repacked weights.
func (st *planning) repacked() bool {
	if !st.p.Host.NarrowRepack.OK() {
		return false
	}
	return st.cfg.Repack == "on" || (!st.stream && st.cfg.Repack == "auto")
}
