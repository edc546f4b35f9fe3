package planner

// ioSteps is how many equal steps of the miss share are priced.
const ioSteps = 8

// PriceTerms are the parts of a predicted decode time, in seconds a token. IOS
// is the time of reads at miss shares from 0 to 1 in equal steps.
type PriceTerms struct {
	DenseS      float64   `json:"dense_s"`
	ExpertsS    float64   `json:"experts_s"`
	ManageS     float64   `json:"manage_s"`
	IOS         []float64 `json:"io_s,omitempty"`
	Projections float64   `json:"projections"`
	Overlap     bool      `json:"overlap"`
}

// DecodeAt is the predicted decode time with another hit rate in the place of
// the predicted one: what shows whether an error came from the hit rate or from
// the price. False where no price was given.
func (p *Prediction) DecodeAt(hit float64) (float64, bool) {
	if p.Terms == nil || !p.DecodeSPerToken.Known {
		return 0, false
	}
	t := terms{dense: p.Terms.DenseS, experts: p.Terms.ExpertsS, over: p.Terms.ManageS, n: p.Terms.Projections, overlap: p.Terms.Overlap}
	if io := p.Terms.IOS; len(io) > 1 {
		at := min(1, max(0, 1-hit)) * float64(len(io)-1)
		i := min(int(at), len(io)-2)
		t.io = io[i] + (io[i+1]-io[i])*(at-float64(i))
	}
	return t.total(), true
}

// priceTerms writes a streamed run's terms down.
func (st *planning) priceTerms(point terms, w float64, packed bool) *PriceTerms {
	out := &PriceTerms{DenseS: point.dense, ExpertsS: point.experts, ManageS: point.over, Projections: point.n, Overlap: point.overlap}
	for i := range ioSteps + 1 {
		t := st.streamTerms(float64(i)/ioSteps, w, packed)
		if !t.known {
			return out
		}
		out.IOS = append(out.IOS, t.io)
	}
	return out
}
