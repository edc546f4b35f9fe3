package experiments

import (
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
	m := rangeText.FindStringSubmatch(part)
	if m == nil || p.Kind != config.Int {
		return []string{part}, nil
	}
	first, err1 := strconv.ParseInt(m[1], 10, 64)
	last, err2 := strconv.ParseInt(m[2], 10, 64)
	step := int64(1)
	var err3 error
	if m[4] != "" {
		step, err3 = strconv.ParseInt(m[4], 10, 64)
	}
	if err1 != nil || err2 != nil || err3 != nil {
		return nil, fmt.Errorf("--values %q: a number is too large", part)
	}
	return series(part, first, last, step, m[3] == "*")
}

func series(part string, first, last, step int64, multiply bool) ([]string, error) {
	switch {
	case first > last:
		return nil, fmt.Errorf("--values %q: the range ends before it starts", part)
	case !multiply && step < 1:
		return nil, fmt.Errorf("--values %q: the step must be at least 1", part)
	case multiply && (step < 2 || first < 1):
		return nil, fmt.Errorf("--values %q: a factor of at least 2 and a start of at least 1 are needed", part)
	}
	var out []string
	for v := first; v <= last; {
		out = append(out, strconv.FormatInt(v, 10))
		if len(out) > MaxArms {
			return nil, fmt.Errorf("--values %q: more than %d values", part, MaxArms)
		}
		if multiply {
			if v > last/step {
				break
			}
			v *= step
		} else {
			if v > last-step {
				break
			}
			v += step
		}
	}
	return out, nil
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
