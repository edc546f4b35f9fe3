package experiments

import (
	"fmt"
	"math"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// Metrics a sweep may judge by.
const (
	MetricDecode  = "decode"
	MetricPrefill = "prefill"
	MetricTTFT    = "ttft"
	MetricLoad    = "load"
)

// metric reads a run's rate: larger is better, 0 is not measured.
type metric struct {
	verb string
	rate func(*record.Measured) float64
}

var metrics = map[string]metric{
	MetricDecode:  {analysis.VerbDecode, func(m *record.Measured) float64 { return inverse(m.DecodeSPerToken) }},
	MetricPrefill: {analysis.VerbPrefill, func(m *record.Measured) float64 { return m.PrefillTokensPerS }},
	MetricTTFT:    {analysis.VerbTTFT, func(m *record.Measured) float64 { return inverse(m.TTFTS) }},
	MetricLoad:    {analysis.VerbLoad, func(m *record.Measured) float64 { return inverse(m.LoadS) }},
}

func inverse(seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return 1 / seconds
}

func metricOf(name string) (metric, error) {
	m, ok := metrics[name]
	if !ok {
		return m, fmt.Errorf("--metric %q: want decode, prefill, ttft or load", name)
	}
	return m, nil
}

// logRate is ln of the rate, and false when the run does not have it.
func (m metric) logRate(r *record.Run) (float64, bool) {
	if r.State != record.StateDone {
		return 0, false
	}
	rate := m.rate(&r.Measured)
	if !(rate > 0) || math.IsInf(rate, 0) {
		return 0, false
	}
	return math.Log(rate), true
}
