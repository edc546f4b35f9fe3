package planner

import "fmt"

// noteCorrections shows each figure that earlier runs corrected, before and
// after: alone, with everything else as it is predicted now.
func (st *planning) noteCorrections(now terms, price func() terms) {
	if !now.known {
		return
	}
	o := &st.p.Overheads
	saved := *o
	show := func(topic, what string, f *Fact[float64], value string) {
		if !f.OK() {
			return
		}
		how := f.Reason
		if how == "" {
			how = "measured by earlier runs"
		}
		*f = Fact[float64]{}
		before := price()
		*o = saved
		if !before.known {
			return
		}
		st.note(topic, value, Measured,
			fmt.Sprintf("%s: %s a token before, %s after.", what, seconds(before.total()), seconds(now.total())),
			fmt.Sprintf("%s; without this a token is priced at %s, with it at %s", how, seconds(before.total()), seconds(now.total())))
	}
	if st.stream {
		show("corrected-reads", fmt.Sprintf("Reads beside compute take %.2f times as long as alone", o.ReadsScale.Value), &o.ReadsScale, fmt.Sprintf("%.2f", o.ReadsScale.Value))
		if f := o.Fill.Value; f > 0 {
			show("corrected-fill", fmt.Sprintf("Filling the cache for the first time costs %s a MiB", seconds(f*float64(mib))), &o.Fill, seconds(f*float64(mib))+"/MiB")
		}
		show("corrected-lookups", fmt.Sprintf("A lookup costs %s", seconds(o.PerLookup.Value)), &o.PerLookup, seconds(o.PerLookup.Value))
		show("corrected-layers", fmt.Sprintf("A layer takes %s beside its priced terms", signedSeconds(o.PerLayer.Value)), &o.PerLayer, signedSeconds(o.PerLayer.Value))
		return
	}
	show("corrected-graph", fmt.Sprintf("A token takes %s beside its priced terms", signedSeconds(o.Resident.Value)), &o.Resident, signedSeconds(o.Resident.Value))
}

// notePromptCorrection is the same of prompts.
func (st *planning) notePromptCorrection(e Estimate) {
	f := &st.p.Overheads.Prefill
	if !f.OK() || !e.Known || f.Value <= 0 {
		return
	}
	st.note("corrected-prompt", fmt.Sprintf("%.2f", f.Value), Measured,
		fmt.Sprintf("Prompts took %.2f times their price: %.4g tokens a second before, %.4g after.", f.Value, e.Point*f.Value, e.Point),
		f.Reason)
}

// signedSeconds writes a time that may be negative.
func signedSeconds(s float64) string {
	if s < 0 {
		return "-" + seconds(-s)
	}
	return seconds(s)
}
