package experiments

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/planner/config"
)

// MaxArms bounds a sweep: beyond it no sensible number of pairs can tell the
// arms apart, and a slip of the range syntax must not fill the memory.
const MaxArms = 26

var rangeText = regexp.MustCompile(`^(\d+)-(\d+)(?:([+*])(\d+))?$`)

// ParseValues reads a lever's values in llama-bench's syntax: commas, and for
// whole numbers first-last, first-last+step, first-last*factor. Every value is
// checked against the knob's range and returned as the knob itself writes it.
func ParseValues(p *config.Param, text string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		values, err := expand(p, strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			canon, err := canonical(p, v)
			if err != nil {
				return nil, fmt.Errorf("--values %q: %w", text, err)
			}
			if seen[canon] {
				return nil, fmt.Errorf("--values %q: %s %s is listed twice", text, p.Name, canon)
			}
			seen[canon] = true
			out = append(out, canon)
		}
		if len(out) > MaxArms {
			return nil, fmt.Errorf("--values %q: more than %d values", text, MaxArms)
		}
	}
	return out, nil
}

// expand turns one range into its values; anything else stands for itself.
func expand(p *config.Param, part string) ([]string, error) {
	if p.Kind != config.Int {
		return []string{part}, nil
	}
	numbers, ok, err := Range(part, MaxArms)
	if err != nil {
		return nil, fmt.Errorf("--values %q: %w", part, err)
	}
	if !ok {
		return []string{part}, nil
	}
	out := make([]string, len(numbers))
	for i, n := range numbers {
		out[i] = strconv.FormatInt(n, 10)
	}
	return out, nil
}

// Range reads first-last, first-last+step or first-last*factor, all whole
// numbers from 0 up, into at most most values. ok is false of any other text.
func Range(text string, most int) (values []int64, ok bool, err error) {
	m := rangeText.FindStringSubmatch(text)
	if m == nil {
		return nil, false, nil
	}
	if m[4] == "" {
		m[4] = "1"
	}
	var n [3]int64 // first, last, step
	for i, digits := range []string{m[1], m[2], m[4]} {
		if n[i], err = strconv.ParseInt(digits, 10, 64); err != nil {
			return nil, true, errors.New("a number is too large")
		}
	}
	values, err = series(n[0], n[1], n[2], m[3] == "*", most)
	return values, true, err
}

func series(first, last, step int64, multiply bool, most int) ([]int64, error) {
	switch {
	case first > last:
		return nil, errors.New("the range ends before it starts")
	case !multiply && step < 1:
		return nil, errors.New("the step must be at least 1")
	case multiply && (step < 2 || first < 1):
		return nil, errors.New("a factor of at least 2 and a start of at least 1 are needed")
	}
	var out []int64
	for v := first; ; {
		if len(out) == most {
			return nil, fmt.Errorf("more than %d values", most)
		}
		out = append(out, v)
		switch {
		case multiply && v <= last/step:
			v *= step
		case !multiply && v <= last-step:
			v += step
		default:
			return out, nil
		}
	}
}

// canonical is how the knob itself writes the value. Switches say on and off.
func canonical(p *config.Param, text string) (string, error) {
	if text == "" && p.Kind != config.String {
		return "", fmt.Errorf("%s: a value is missing", p.Flag())
	}
	c := config.Default()
	if err := p.Set(&c, text); err != nil {
		return "", err
	}
	return Shown(p, &c), nil
}

// Shown is the knob's value in c as an arm's name has it.
func Shown(p *config.Param, c *config.Config) string {
	v := p.Get(c)
	switch {
	case p.Kind == config.Bool && v == "true":
		return "on"
	case p.Kind == config.Bool:
		return "off"
	case v == "":
		return "none"
	}
	return v
}
