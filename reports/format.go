package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

const mib = 1 << 20

// none stands where nothing was measured or predicted.
const none = "–"

// digits writes x with n significant digits and no exponent.
func digits(x float64, n int) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	after := max(n-1-int(math.Floor(math.Log10(math.Abs(x)))), 0)
	return strconv.FormatFloat(x, 'f', after, 64)
}

// seconds writes a time per token; 0 was not measured.
func seconds(s float64) string {
	if s <= 0 {
		return none
	}
	return digits(s, 4)
}

func rate(secondsPerToken float64) string {
	if secondsPerToken <= 0 {
		return none
	}
	return digits(1/secondsPerToken, 4)
}

func percent(fraction float64) string { return strconv.FormatFloat(100*fraction, 'f', 1, 64) }

func mebibytes(b float64) string { return digits(b/mib, 4) }

// signedPercent writes a ratio less one with its sign.
func signedPercent(r float64) string { return fmt.Sprintf("%+.1f", 100*r) }

// estimate writes a predicted quantity as point [lo, hi].
func estimate(e planner.Estimate, write func(float64) string) string {
	if !e.Known {
		return none
	}
	return fmt.Sprintf("%s [%s, %s]", write(e.Point), write(e.Lo), write(e.Hi))
}

// short is how an identifier is shown, and what files are named after: letters
// and digits of it, whatever a foreign ledger holds in its place.
func short(id string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	return plain[:min(8, len(plain))]
}

func date(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02")
}

func minute(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04")
}

func dates(from, to time.Time) string {
	if date(from) == date(to) {
		return date(from)
	}
	return date(from) + " to " + date(to)
}

func machineName(m record.Machine) string {
	name := m.Label
	if name == "" {
		name = m.CPU
	}
	if name == "" {
		name = "machine " + short(m.ID)
	}
	return fmt.Sprintf("%s, %s, %s GiB", name, analysis.Count(m.Cores, "core"), digits(float64(m.RAMBytes)/(1<<30), 3))
}

func buildName(b record.Build) string {
	name := "bmoe " + short(b.Commit)
	if b.Commit == "" {
		name = "bmoe of no recorded commit"
	}
	if b.Dirty {
		name += " (changed)"
	}
	if b.LlamaCPP != "" {
		name += ", llama.cpp " + b.LlamaCPP
	}
	if b.CPUModule != "" {
		name += ", " + b.CPUModule
	}
	return name
}

func modelName(m record.Model) string {
	name := m.Name
	if name == "" {
		name = "model " + short(m.ID)
	}
	return fmt.Sprintf("%s (%s %s, %s MiB, %d x %d experts, %d used)", name, m.Arch, m.Quant, mebibytes(float64(m.Bytes)), m.Layers, m.Experts, m.ExpertsUsed)
}

// label says what every table must: machine, build, model.
func (s setting) label() string {
	return machineName(s.machine) + "; " + buildName(s.build) + "; " + modelName(s.model)
}
