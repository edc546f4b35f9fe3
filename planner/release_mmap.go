package planner

import "fmt"

// chooseReleaseMmap unmaps the file after the load only on a measured Yes, and
// only for a shape in which nothing reads the mapping again: the head is not the
// embedding table, no multi-token-prediction block runs, the weights are copied.
func (st *planning) chooseReleaseMmap() {
	s := &st.p.Storage
	rates := fmt.Sprintf("%s with a mapping alive, %s without", rateOf(s.RateMapped), rateOf(s.RateUnmapped))
	unsafe := ""
	switch {
	case st.cfg.DenseWeights == "mmap":
		unsafe = "the other weights are read from the mapping"
	case Ask(st.p.Model.TiedHead) != No:
		unsafe = "the output head is, or may be, the mapped embedding table"
	case Ask(st.p.Model.MTPUsed) != No:
		unsafe = "prediction blocks are, or may be, read from the mapping"
	}
	switch {
	case Ask(s.MapSerialises) != Yes:
		st.keep("release-mmap", Decision{
			Provenance: Unprobed, Topic: "release-mmap",
			Brief:  "The file stays mapped; the probe saw no effect, which is no proof that there is none.",
			Reason: fmt.Sprintf("%s; this probe can say yes and not no, so measure %s yourself", rates, flagOf("release-mmap")),
		})
	case unsafe != "":
		st.keep("release-mmap", Decision{
			Provenance: Measured, Topic: "release-mmap",
			Brief: "The file stays mapped: " + unsafe + ".", Reason: "a live mapping slows reads here (" + rates + "), but " + unsafe,
		})
	default:
		st.decide("release-mmap", "on", Decision{
			Provenance: Measured, Topic: "release-mmap",
			Brief: "The file is unmapped after loading; a live mapping slows the drive's reads here.", Reason: rates + ", and nothing reads the mapping after the load",
		})
	}
}
