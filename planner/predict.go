package planner

import (
	"fmt"
	"math"
)

// predict writes down what the run is expected to do, each figure with an
// interval from the spread of the measurements behind it.
func (st *planning) predict() {
	pr := &st.plan.Prediction
	if !st.m.known {
		return
	}
	switch {
	case st.placed && st.stream:
		st.predictStream(pr)
		st.unpricedPlacement(pr)
	case st.placed:
		st.unpricedPlacement(pr)
	case st.stream:
		st.predictStream(pr)
	case st.plan.Declined || (st.plan.Regime != RegimeFits && st.plan.Regime != RegimeDense && st.plan.Regime != RegimeDevices):
		st.predictMapped(pr)
	case st.plan.Regime != RegimeDevices:
		st.predictResident(pr)
	}
}

// unpricedPlacement takes times back where layers are computed on devices: no
// measurement prices what a placed layer takes. Hits and bytes stand.
func (st *planning) unpricedPlacement(pr *Prediction) {
	basis := "no price: layers are placed on devices; owed a timed run of the placement"
	pr.DecodeSPerToken, pr.PrefillTokensPerS, pr.Terms, pr.PrefillTerms = Estimate{Basis: basis}, Estimate{Basis: basis}, nil, nil
	pr.Dominant = ""
}

func (st *planning) predictStream(pr *Prediction) {
	if !st.cache.known {
		return
	}
	pr.HitRate = st.hitRate(st.cache.bytes)
	pr.BytesPerToken = st.missBytes(pr.HitRate)
	st.note("hit-rate", percent(pr.HitRate.Point), st.hitProvenance(),
		hitBrief(pr.HitRate),
		pr.HitRate.Basis)
	packed := st.repacked()
	price := func() terms {
		t := st.streamTerms(1-pr.HitRate.Point, st.weightRate(packed), packed)
		t.fill = st.fillSeconds(st.cache.bytes, int64(st.cfg.Predict-1))
		return t
	}
	point := price()
	if !point.known {
		pr.DecodeSPerToken.Basis = "no price: owed " + point.missing
		return
	}
	best, worst := point, point
	best.miss, worst.miss = 1-pr.HitRate.Hi, 1-pr.HitRate.Lo
	pr.DecodeSPerToken = st.decodeEstimate(point, best, worst)
	pr.Dominant = point.dominant()
	pr.Terms = st.priceTerms(point)
	pr.PrefillTokensPerS = st.predictPrefill(pr, packed)
	st.noteCorrections(point, price)
	st.notePromptCorrection(pr.PrefillTokensPerS)
}

func hitBrief(h Estimate) string {
	text := fmt.Sprintf("About %s of the experts a token needs should be in the cache", percent(h.Point))
	if h.Lo == h.Hi {
		return text + "."
	}
	return text + fmt.Sprintf(", somewhere between %s and %s.", percent(h.Lo), percent(h.Hi))
}

// missBytes is what a token reads from the drive.
func (st *planning) missBytes(h Estimate) Estimate {
	c := float64(st.m.cycle)
	return Estimate{Known: true, Point: (1 - h.Point) * c, Lo: (1 - h.Hi) * c, Hi: (1 - h.Lo) * c, Basis: "token cycle x predicted misses"}
}

func (st *planning) predictResident(pr *Prediction) {
	packed := st.repacked()
	t := st.residentTerms()
	if !t.known {
		pr.DecodeSPerToken.Basis = "no price: owed " + t.missing
		return
	}
	pr.DecodeSPerToken = st.decodeEstimate(t, t, t)
	pr.Dominant = t.dominant()
	pr.PrefillTokensPerS = st.predictPrefill(pr, packed)
	st.noteCorrections(t, st.residentTerms)
	st.notePromptCorrection(pr.PrefillTokensPerS)
}

// predictMapped states the bound: every weight of a token faulted in, nothing
// resident. How much the page cache keeps is not known, so the interval goes
// down to the buffered rate, or to memory's.
func (st *planning) predictMapped(pr *Prediction) {
	t := st.mappedTerms()
	if !t.known {
		pr.DecodeSPerToken.Basis = "no price: owed " + t.missing
		return
	}
	lo := t.dense + t.experts + t.over
	if b := st.p.Storage.Buffered.Or(0); b > 0 {
		lo = max(lo, float64(st.m.read+st.m.cycle)/b)
	}
	pr.DecodeSPerToken = Estimate{Known: true, Point: t.total(), Lo: min(lo, t.total()), Hi: t.total(), Basis: "bound: the file mapped and nothing resident"}
	widen(&pr.DecodeSPerToken, st.pol.MinSpread)
	pr.BytesPerToken = Estimate{Known: true, Point: float64(st.m.read + st.m.cycle), Hi: float64(st.m.read + st.m.cycle), Basis: "bound: nothing resident"}
	pr.Dominant = t.dominant()
}

// decodeEstimate is a token's time with its interval: best and worst are the
// terms at the ends of the hit rate's interval. Where earlier runs measured how
// far prices lie off, that and the hit rate's part add in squares, as errors
// that have nothing to do with each other do; otherwise every term goes to the
// end of its own spread.
func (st *planning) decodeEstimate(point, best, worst terms) Estimate {
	e := Estimate{Known: true, Point: point.total(), Basis: st.decodeBasis(point)}
	if half, ok := st.p.Overheads.Residual.Get(); ok && e.Point > 0 {
		e.Lo = e.Point * math.Exp(-math.Hypot(half, math.Log(e.Point/best.total())))
		e.Hi = e.Point * math.Exp(math.Hypot(half, math.Log(worst.total()/e.Point)))
	} else {
		e.Lo, e.Hi = st.spreadTerms(best, -1).total(), st.spreadTerms(worst, 1).total()
	}
	widen(&e, st.pol.MinSpread)
	return e
}

// spreadTerms moves each term to one end of its measurement's spread.
func (st *planning) spreadTerms(t terms, sign float64) terms {
	half := func(spread float64) float64 { return 1 + sign*min(0.9, spread/2) }
	mem := half(st.p.Host.Narrow.Spread)
	t.dense *= mem
	t.experts *= mem
	_, spread, _ := rateAt(st.laneRates(), st.cfg.IOThreads)
	t.ioScale = half(spread)
	t.over *= half(st.p.Overheads.PerLayer.Spread)
	return t
}

// widen keeps an interval from claiming more than one sample can know.
func widen(e *Estimate, least float64) {
	e.Lo = max(0, min(e.Lo, e.Point*(1-least)))
	e.Hi = max(e.Hi, e.Point*(1+least))
}

func (st *planning) decodeBasis(t terms) string {
	text := fmt.Sprintf("other weights %s, experts from memory %s, from the drive %s, management %s",
		seconds(t.dense), seconds(t.experts), seconds(t.io()), seconds(t.over))
	if t.overlap && len(t.reads.done) > 0 {
		text += fmt.Sprintf(", %s of the drive's time waited for", seconds(t.wait()))
	}
	if t.fill > 0 {
		text += fmt.Sprintf(", filling the cache %s", seconds(t.fill))
	}
	if st.stream && !st.p.Overheads.PerLayer.OK() {
		text += "; management per layer not measured"
	}
	return text
}
