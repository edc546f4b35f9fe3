package planner

import "fmt"

// chooseLanes takes the largest lane count whose rate is within the tolerance
// of the best. The largest, because the probe sees throughput and a token also
// waits: on record, lanes it could not tell apart differed by 13 % in decode.
func (st *planning) chooseLanes() {
	points := st.laneRates()
	if len(points) == 0 {
		st.keep("io-threads", Decision{
			Provenance: Unprobed, Topic: "unmeasured-storage",
			Brief:  fmt.Sprintf("%d reads at a time, the default; the drive was not measured.", st.cfg.IOThreads),
			Reason: "owed: the storage rate by request size and lanes; " + st.p.Storage.Curve.Reason,
		})
		return
	}
	var best lanePoint
	for _, p := range points {
		if p.rate > best.rate {
			best = p
		}
	}
	pick := best
	for _, p := range points {
		if p.rate >= best.rate*(1-st.pol.LaneTolerance) && p.lanes > pick.lanes {
			pick = p
		}
	}
	st.note("storage-rate", rate(pick.rate), Measured,
		fmt.Sprintf("The drive reads experts at %s.", rate(pick.rate)),
		fmt.Sprintf("at requests of %s: %s", size(st.m.sliceBytes()), lanesText(points)))
	st.decide("io-threads", itoa(int64(pick.lanes)), Decision{
		Provenance: Measured, Topic: "lanes",
		Brief:  fmt.Sprintf("%d reads at a time, at %s.", pick.lanes, rate(pick.rate)),
		Reason: fmt.Sprintf("the most lanes within %s of the best rate (%s at %d): %s", percent(st.pol.LaneTolerance), rate(best.rate), best.lanes, lanesText(points)),
	})
	if pick.spread > st.pol.SpreadWide {
		st.note("storage-spread", percent(pick.spread), Measured,
			fmt.Sprintf("The drive's rate varied by %s between samples, so predictions built on it are that uncertain.", percent(pick.spread)),
			fmt.Sprintf("spread of the samples at the deciding size and %d lanes; above %s two runs should not be compared by this plan's figures", pick.lanes, percent(st.pol.SpreadWide)))
	}
}

func lanesText(points []lanePoint) string {
	text := ""
	for i, p := range points {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d lanes %s", p.lanes, rate(p.rate))
	}
	return text
}
