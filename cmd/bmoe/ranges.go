package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxRange bounds what one range may expand to.
const maxRange = 4096

// parseRanges reads llama-bench's list syntax: numbers and ranges FIRST-LAST,
// FIRST-LAST+STEP or FIRST-LAST*FACTOR, with commas between. The step is 1.
func parseRanges(text string) ([]float64, error) {
	var out []float64
	for _, part := range strings.Split(text, ",") {
		first, rest, ranged := strings.Cut(strings.TrimSpace(part), "-")
		lo, err := nonNegative(first)
		if err != nil {
			return nil, err
		}
		if !ranged {
			out = append(out, lo)
			continue
		}
		last, step, next := rest, 1.0, func(x, s float64) float64 { return x + s }
		if i := strings.IndexAny(rest, "+*"); i >= 0 {
			last = rest[:i]
			if step, err = nonNegative(rest[i+1:]); err != nil {
				return nil, err
			}
			if rest[i] == '*' {
				next = func(x, s float64) float64 { return x * s }
			}
		}
		hi, err := nonNegative(last)
		if err != nil {
			return nil, err
		}
		if hi < lo || next(lo, step) <= lo {
			return nil, fmt.Errorf("range %q does not go up", part)
		}
		for x := lo; x <= hi*(1+1e-12); x = next(x, step) {
			if len(out) == maxRange {
				return nil, fmt.Errorf("more than %d values", maxRange)
			}
			out = append(out, x)
		}
	}
	return out, nil
}

func nonNegative(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q: want a number from 0 up", text)
	}
	return x, nil
}
