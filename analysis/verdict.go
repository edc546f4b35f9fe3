package analysis

import (
	"fmt"
	"math"
)

// Verdict is a finding in one word.
type Verdict string

// Words for an effect. Void is not Undecided: it means that the runs do not
// answer the question, however many there are.
const (
	Better     Verdict = "better"     // faster by more than the margin
	Worse      Verdict = "worse"      // slower by more than the margin
	Equivalent Verdict = "equivalent" // the whole interval within the margin
	Small      Verdict = "small"      // direction known, size not shown to matter
	Undecided  Verdict = "undecided"
	Void       Verdict = "void"
)

// Words for a prediction, beside Undecided and Void.
const (
	Confirmed Verdict = "confirmed"
	Refuted   Verdict = "refuted"
)

// Effect is a paired comparison on the log scale: positive favours the arm.
type Effect struct {
	N        int // pairs
	Estimate float64
	Interval
	Enough bool    // the interval attains the level that was asked for
	Want   float64 // that level
	P      float64 // exact, not adjusted
	Signs  Signs
}

// NewEffect estimates the effect behind the paired log ratios d.
func NewEffect(d []float64, level float64) Effect {
	c, ok := SignedRankInterval(d, level)
	return Effect{
		N: len(d), Estimate: HodgesLehmann(d), Interval: c, Enough: ok, Want: level,
		P: SignedRankP(d), Signs: CountSigns(d),
	}
}

// Judge names the effect given an equivalence margin (a log ratio) and the
// reason in plain words. pHolm is the effect's p adjusted for its family; it
// can show a direction that the (Bonferroni) interval just misses.
func (e Effect) Judge(margin, alpha, pHolm float64) (Verdict, string) {
	switch {
	case !e.Enough:
		return Undecided, e.tooFew()
	case e.Lo > margin:
		return Better, fmt.Sprintf("the whole interval lies above the %s margin%s", percent(margin), e.dissent(alpha))
	case e.Hi < -margin:
		return Worse, fmt.Sprintf("the whole interval lies below the %s margin%s", percent(margin), e.dissent(alpha))
	case -margin <= e.Lo && e.Hi <= margin:
		return Equivalent, fmt.Sprintf("the whole interval lies within %s of no difference", percent(margin))
	case e.Lo > 0 || e.Hi < 0:
		return Small, fmt.Sprintf("the direction is known, but not that it exceeds the %s margin%s", percent(margin), e.dissent(alpha))
	case pHolm <= alpha:
		return Small, fmt.Sprintf("the direction is known from p = %.3g (Holm), though the interval reaches 0%s", pHolm, e.dissent(alpha))
	}
	return Undecided, "the interval holds both no difference and one larger than the margin" + e.signsAlone(alpha)
}

func (e Effect) tooFew() string {
	if e.N == 0 {
		return "no pair was completed"
	}
	need := 1
	for {
		if _, _, ok := Cut(need, e.Want); ok {
			break
		}
		need++
	}
	return fmt.Sprintf("%s can give a %s interval at most; %d are the fewest for %s",
		Count(e.N, "pair"), Level(e.Level), need, Level(e.Want))
}

// dissent says that the sign count, which assumes less, does not show what the
// signed-rank interval shows.
func (e Effect) dissent(alpha float64) string {
	s := e.Signs
	favoured, against := s.Positive, s.Negative
	if e.Estimate < 0 {
		favoured, against = against, favoured
	}
	switch {
	case favoured <= against:
		return fmt.Sprintf("; but the signs point the other way (%d of %d pairs)", against, e.N)
	case s.P() > alpha:
		return fmt.Sprintf("; the sign count alone (%d of %d pairs) does not show it (p %.2g)", favoured, e.N, s.P())
	}
	return ""
}

func (e Effect) signsAlone(alpha float64) string {
	if s := e.Signs; s.P() <= alpha {
		return fmt.Sprintf("; yet %d of %d pairs agree in sign (p %.2g)", max(s.Positive, s.Negative), e.N, s.P())
	}
	return ""
}

// JudgeBand names a prediction that the effect lies in [lo, hi] (log ratios;
// either end may be infinite).
func (e Effect) JudgeBand(lo, hi float64) (Verdict, string) {
	band := Span(lo, hi)
	switch {
	case !e.Enough:
		return Undecided, e.tooFew()
	case lo <= e.Lo && e.Hi <= hi:
		return Confirmed, "the whole interval lies in the predicted band, " + band
	case e.Hi < lo || e.Lo > hi:
		return Refuted, "the whole interval lies outside the predicted band, " + band
	}
	return Undecided, "the interval lies partly in the predicted band, " + band
}

// Ratio turns a log ratio into a ratio less one: 0.05 is 5 % more.
func Ratio(log float64) float64 { return math.Expm1(log) }

// LogRatio is its inverse.
func LogRatio(ratio float64) float64 { return math.Log1p(ratio) }
