package analysis

import (
	"fmt"
	"math"
)

// percent writes a log ratio as a percentage.
func percent(log float64) string { return fmt.Sprintf("%.3g %%", 100*Ratio(log)) }

// Level writes a confidence level, a fraction, with the decimal that tells
// 93.8 % from 95 %.
func Level(level float64) string { return fmt.Sprintf("%.1f %%", 100*level) }

// Span writes an interval of log ratios in words.
func Span(lo, hi float64) string {
	switch {
	case math.IsInf(lo, -1) && math.IsInf(hi, 1):
		return "anything"
	case math.IsInf(hi, 1):
		return "at least " + signed(lo)
	case math.IsInf(lo, -1):
		return "at most " + signed(hi)
	case lo >= 0:
		return fmt.Sprintf("%.1f to %.1f %% faster", 100*Ratio(lo), 100*Ratio(hi))
	case hi <= 0:
		return fmt.Sprintf("%.1f to %.1f %% slower", -100*Ratio(hi), -100*Ratio(lo))
	}
	return signed(lo) + " to " + signed(hi)
}

// signed writes a log ratio as a percentage with its direction.
func signed(log float64) string {
	if log < 0 {
		return fmt.Sprintf("%.1f %% slower", -100*Ratio(log))
	}
	return fmt.Sprintf("%.1f %% faster", 100*Ratio(log))
}

// Verbs for Sentence.
const (
	VerbDecode  = "decodes"
	VerbPrefill = "reads a prompt"
	VerbTTFT    = "gives its first token"
	VerbLoad    = "loads"
)

// Sentence says the effect in plain words: who, against whom, doing what.
func (e Effect) Sentence(arm, verb, baseline string) string {
	if e.N == 0 {
		return fmt.Sprintf("%s against %s: no pair was completed", arm, baseline)
	}
	size, word := 100*Ratio(e.Estimate), "faster"
	if e.Estimate < 0 {
		size, word = -size, "slower"
	}
	return fmt.Sprintf("%s %s %.1f %% %s than %s (%s)", arm, verb, size, word, baseline, e.account())
}

// account is the interval, its level and the pairs behind it.
func (e Effect) account() string {
	var span string
	switch {
	case e.Estimate >= 0 && e.Lo >= 0:
		span = fmt.Sprintf("%.1f to %.1f %%", 100*Ratio(e.Lo), 100*Ratio(e.Hi))
	case e.Estimate < 0 && e.Hi <= 0:
		span = fmt.Sprintf("%.1f to %.1f %%", -100*Ratio(e.Hi), -100*Ratio(e.Lo))
	default:
		span = signed(e.Lo) + " to " + signed(e.Hi)
	}
	return fmt.Sprintf("%s CI %s, %s", Level(e.Level), span, Count(e.N, "pair"))
}

// Count is a number with its noun, which takes an s when it is not one.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
