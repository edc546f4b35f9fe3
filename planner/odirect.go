package planner

import "fmt"

// chooseODirect reads past the page cache where that was verified to return
// the right bytes and is not slower, and through it where it is not.
func (st *planning) chooseODirect() {
	s := &st.p.Storage
	both := fmt.Sprintf("uncached reads reach %s, buffered ones %s", st.bestRateText(), rateOf(s.Buffered))
	verified := Ask(s.ODirect)
	switch {
	case verified == Yes && st.bufferedWins():
		st.decide("odirect", "off", Decision{
			Provenance: Measured, Topic: "odirect-slower",
			Brief:  fmt.Sprintf("Experts are read through the page cache, at %s; reading past it is slower here.", rateOf(s.Buffered)),
			Reason: "uncached reads return the file's bytes on this path, but " + both + ", beyond what either varied by",
		})
	case verified == Yes:
		st.decide("odirect", "on", Decision{
			Provenance: Measured, Topic: "odirect",
			Brief: "Experts are read past the page cache; its bytes were checked.", Reason: "uncached reads return the file's bytes on this path; " + both,
		})
	case verified == No:
		st.decide("odirect", "off", Decision{
			Provenance: Measured, Topic: "odirect",
			Brief: "Experts are read through the page cache; reading past it does not work here.", Reason: "uncached reads are refused or wrong on this path: " + s.ODirect.Reason + "; " + both,
		})
	default:
		st.keep("odirect", Decision{
			Provenance: Unprobed, Topic: "odirect",
			Brief:  "Whether reading past the page cache works here was not checked; the default stands.",
			Reason: "owed: an uncached read of this file compared with a buffered one",
		})
	}
}

// bufferedWins says whether reads through the page cache were measured faster
// than reads past it, by more than both varied.
func (st *planning) bufferedWins() bool {
	buffered := &st.p.Storage.Buffered
	r, spread, ok := rateAt(st.laneRates(), st.cfg.IOThreads)
	return ok && buffered.Provenance == Measured && buffered.Or(0)*(1-buffered.Spread) > r*(1+spread)
}

func (st *planning) bestRateText() string {
	if r, _, ok := rateAt(st.laneRates(), st.cfg.IOThreads); ok {
		return rate(r)
	}
	return "an unmeasured rate"
}
