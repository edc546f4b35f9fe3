package analysis

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Scored is a prediction that was made before its measurement, and the
// measurement. All are positive and of one quantity.
type Scored struct {
	Predicted float64
	Lo, Hi    float64 // the stated interval; 0 and 0 where none was stated
	Measured  float64
	Baseline  float64 // what a dumb predictor said; 0 where there was none
	Cluster   string  // machine and model
}

// Score is how well one predictor did. Errors are e = ln(measured/predicted).
type Score struct {
	N         int
	Bias      float64  // median e; positive: more was measured than predicted
	BiasCI    Interval // Hodges-Lehmann's, over e
	MedianAbs float64  // median |e|
	Spread    float64  // standard deviation of e
	Within    [3]int   // |e| within factors of 1.1, 1.25 and 2
}

// WithinFactors are the factors that Score.Within counts.
var WithinFactors = [3]float64{1.1, 1.25, 2}

// Calibration is a set of predictions judged, beside a dumb baseline.
type Calibration struct {
	Score
	Baseline Score // of those that have one, N of them

	Stated     int      // predictions with an interval
	Covered    int      // measured inside it
	CoverageCI Interval // Clopper and Pearson's exact interval of the coverage
	Winkler    float64  // mean interval score on the log scale; smaller is better
}

// Calibrate judges predictions whose intervals were stated at the nominal
// level, a fraction. The interval score (Winkler, 1972; Gneiting and Raftery,
// 2007) is width + 2/alpha times the miss, so wide intervals do not win. What
// has no positive prediction or measurement is left out.
func Calibrate(list []Scored, nominal, level float64) Calibration {
	var e, base []float64
	var c Calibration
	var winkler float64
	alpha := 1 - nominal
	for _, s := range list {
		if !(s.Predicted > 0) || !(s.Measured > 0) {
			continue
		}
		e = append(e, math.Log(s.Measured/s.Predicted))
		if s.Baseline > 0 {
			base = append(base, math.Log(s.Measured/s.Baseline))
		}
		if s.Lo > 0 && s.Hi >= s.Lo {
			c.Stated++
			if s.Measured >= s.Lo && s.Measured <= s.Hi {
				c.Covered++
			}
			lo, hi, x := math.Log(s.Lo), math.Log(s.Hi), math.Log(s.Measured)
			winkler += hi - lo + 2/alpha*(math.Max(0, lo-x)+math.Max(0, x-hi))
		}
	}
	c.Score, c.Baseline = score(e, level), score(base, level)
	if c.Stated > 0 {
		c.Winkler = winkler / float64(c.Stated)
	}
	c.CoverageCI = ClopperPearson(c.Covered, c.Stated, level)
	return c
}

func score(e []float64, level float64) Score {
	s := Score{N: len(e)}
	if len(e) == 0 {
		return s
	}
	abs := make([]float64, len(e))
	for i, v := range e {
		abs[i] = math.Abs(v)
		for n, f := range WithinFactors {
			if abs[i] <= math.Log(f) {
				s.Within[n]++
			}
		}
	}
	s.Bias, s.MedianAbs = Median(e), Median(abs)
	if len(e) > 1 {
		s.Spread = StdDev(e)
	}
	s.BiasCI, _ = SignedRankInterval(e, level)
	return s
}

// ClopperPearson is the exact interval of a share of which k of n were seen
// (Clopper and Pearson, 1934). Without a trial it is 0 to 1.
func ClopperPearson(k, n int, level float64) Interval {
	c := Interval{Lo: 0, Hi: 1, Level: level}
	if n <= 0 {
		return c
	}
	tail := (1 - level) / 2
	if k > 0 {
		c.Lo = distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(tail)
	}
	if k < n {
		c.Hi = distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(1 - tail)
	}
	return c
}

// Beats says by how much the predictor's median |e| is under its baseline's on
// the predictions that have both, as a factor above 1; 0 where none has.
func Beats(list []Scored) float64 {
	var e, base []float64
	for _, s := range list {
		if s.Predicted > 0 && s.Measured > 0 && s.Baseline > 0 {
			e = append(e, math.Abs(math.Log(s.Measured/s.Predicted)))
			base = append(base, math.Abs(math.Log(s.Measured/s.Baseline)))
		}
	}
	if len(e) == 0 {
		return 0
	}
	mine := Median(e)
	if mine == 0 {
		return math.Inf(1)
	}
	return Median(base) / mine
}
