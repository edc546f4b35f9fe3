package planner

// ioSteps is how many equal steps of the miss share are priced.
const ioSteps = 32

// PriceTerms are the parts of a predicted decode time, in seconds a token.
type PriceTerms struct {
	DenseS      float64 `json:"dense_s"`
	ExpertsS    float64 `json:"experts_s"`
	ManageS     float64 `json:"manage_s"`
	FillS       float64 `json:"fill_s,omitempty"` // filling the cache, spread over the run
	Projections float64 `json:"projections"`
	Overlap     bool    `json:"overlap"`
	// WaitS is the time compute waits for reads and IOS the time the drive is
	// busy with them, at miss shares from 0 to 1 in equal steps.
	WaitS []float64 `json:"wait_s,omitempty"`
	IOS   []float64 `json:"io_s,omitempty"`
}

// DecodeAt is the predicted decode time with another hit rate in the place of
// the predicted one: what shows whether an error came from the hit rate or from
// the price. False where no price was given.
func (p *Prediction) DecodeAt(hit float64) (float64, bool) {
	if p.Terms == nil || !p.DecodeSPerToken.Known {
		return 0, false
	}
	t := p.Terms
	return t.DenseS + t.ExpertsS + t.ManageS + t.FillS + between(t.WaitS, 1-hit), true
}

// between reads a table of values at equal steps from 0 to 1.
func between(table []float64, x float64) float64 {
	if len(table) < 2 {
		return 0
	}
	at := min(1, max(0, x)) * float64(len(table)-1)
	i := min(int(at), len(table)-2)
	return table[i] + (table[i+1]-table[i])*(at-float64(i))
}

// priceTerms writes a streamed run's terms down.
func (st *planning) priceTerms(point terms) *PriceTerms {
	out := &PriceTerms{DenseS: point.dense, ExpertsS: point.experts, ManageS: point.over, FillS: point.fill, Projections: float64(st.m.projections()), Overlap: point.overlap}
	for i := range ioSteps + 1 {
		t := point
		t.miss = float64(i) / ioSteps
		out.WaitS, out.IOS = append(out.WaitS, t.wait()), append(out.IOS, t.io())
	}
	return out
}
