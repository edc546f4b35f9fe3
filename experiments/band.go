package experiments

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// unbounded stands for an open end of a band: JSON has no infinity, and no
// effect is e^20.
const unbounded = 20

var bandText = regexp.MustCompile(`^(better|worse|faster|slower) by (?:at least )?(\d+(?:\.\d+)?) ?%?(?: ?(?:\.\.|to) ?(\d+(?:\.\d+)?) ?%?)?$`)

// ParseBand reads a predicted effect: "better by 5%..15%", "better by 5%" (at
// least), "worse by 2%..4%", "better", "worse", "equivalent" (within the
// margin, a ratio less one).
func ParseBand(text string, margin float64) (record.Band, error) {
	bad := func() (record.Band, error) {
		return record.Band{}, fmt.Errorf(`--predict %q: want "better by 5%%..15%%", "worse by 5%%", "better", "worse" or "equivalent"`, text)
	}
	plain := strings.ToLower(strings.Join(strings.Fields(text), " "))
	switch plain {
	case "better", "faster":
		return record.Band{Lo: analysis.LogRatio(margin), Hi: unbounded}, nil
	case "worse", "slower":
		return record.Band{Lo: -unbounded, Hi: -analysis.LogRatio(margin)}, nil
	case "equivalent", "equal", "no difference":
		m := analysis.LogRatio(margin)
		return record.Band{Lo: -m, Hi: m}, nil
	}
	m := bandText.FindStringSubmatch(plain)
	if m == nil {
		return bad()
	}
	lo, err := strconv.ParseFloat(m[2], 64)
	if err != nil {
		return bad()
	}
	hi := math.Inf(1)
	if m[3] != "" {
		if hi, err = strconv.ParseFloat(m[3], 64); err != nil || hi < lo {
			return bad()
		}
	}
	if m[1] == "worse" || m[1] == "slower" {
		return slowerBand(lo, hi, bad)
	}
	b := record.Band{Lo: analysis.LogRatio(lo / 100), Hi: unbounded}
	if !math.IsInf(hi, 1) {
		b.Hi = analysis.LogRatio(hi / 100)
	}
	return b, nil
}

func slowerBand(lo, hi float64, bad func() (record.Band, error)) (record.Band, error) {
	if lo >= 100 || (hi >= 100 && !math.IsInf(hi, 1)) {
		return bad()
	}
	b := record.Band{Lo: -unbounded, Hi: analysis.LogRatio(-lo / 100)}
	if !math.IsInf(hi, 1) {
		b.Lo = analysis.LogRatio(-hi / 100)
	}
	return b, nil
}

// bandEnds restores the infinities.
func bandEnds(b record.Band) (lo, hi float64) {
	lo, hi = b.Lo, b.Hi
	if lo <= -unbounded {
		lo = math.Inf(-1)
	}
	if hi >= unbounded {
		hi = math.Inf(1)
	}
	return lo, hi
}

// BandWords says a band in words.
func BandWords(b record.Band) string { return analysis.Span(bandEnds(b)) }

// ParseMargin reads an equivalence margin, "2%" or "0.02", as a ratio less one.
func ParseMargin(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, fmt.Errorf("--margin %q: want a percentage between 0%% and 100%%, such as 2%%", text)
	}
	return v, nil
}
