package reports

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

const runsID = "runs"

var runColumns = columns("run", "started (UTC)", "settings", "#tokens", "#predicted s/token", "#measured s/token", "#t/s",
	"#predicted hits %", "#measured hits %", "#predicted MiB/token", "#measured MiB/token", "state")

// runsSection is a table of runs for each machine, build and model: what was
// predicted and what was measured.
func (d *Data) runsSection() Section {
	s := Section{ID: runsID, Title: "Runs"}
	if len(d.Runs) == 0 {
		s.Blocks = append(s.Blocks, Text("No run is stored yet."))
		return s
	}
	for _, g := range d.index().groups {
		s.Blocks = append(s.Blocks, runsTable(g))
	}
	s.Blocks = append(s.Blocks, Text("A predicted figure is point [low, high], written down before its run. s/token and the hit rate are of decode; a figure that was not measured or not predicted is "+none+"."))
	return s
}

func runsTable(g group) Table {
	from, to := span(g.runs)
	t := Table{
		Caption: fmt.Sprintf("%s; %s; n = %s.", g.label(), dates(from, to), analysis.Count(len(g.runs), "run")),
		Columns: runColumns,
	}
	for _, r := range g.runs {
		m := &r.Run.Measured
		var p planner.Prediction
		if r.Run.Prediction != nil {
			p = r.Run.Prediction.Prediction
		}
		hits, bytes := none, none
		if r.Run.Config.MoeStream && m.DecodeTokens > 0 {
			hits, bytes = percent(m.HitRate), mebibytes(m.BytesPerToken)
		}
		t.Rows = append(t.Rows, []string{
			short(r.Run.RunID), minute(r.Run.StartedAt), settings(&r.Run.Config), strconv.FormatInt(m.DecodeTokens, 10),
			estimate(p.DecodeSPerToken, seconds), seconds(m.DecodeSPerToken), rate(m.DecodeSPerToken),
			estimate(p.HitRate, percent), hits, estimate(p.BytesPerToken, mebibytes), bytes, state(r),
		})
	}
	return t
}

// settings writes the knobs that differ from their defaults, short.
func settings(c *config.Config) string {
	if !c.MoeStream {
		return "resident, " + c.LoadMode
	}
	cache := "auto"
	if c.CacheMB != config.Auto {
		cache = strconv.Itoa(c.CacheMB) + " MiB"
	}
	parts := []string{"cache " + cache, c.CachePolicy, analysis.Count(c.IOThreads, "lane"), c.DenseWeights}
	if !c.ODirect {
		parts = append(parts, "buffered")
	}
	if !c.Overlap {
		parts = append(parts, "no overlap")
	}
	if c.Repack != "auto" {
		parts = append(parts, "repack "+c.Repack)
	}
	return strings.Join(parts, ", ")
}

func state(r *record.StoredRun) string {
	s := r.Run.State
	if r.Run.Signal != "" {
		s += " (" + r.Run.Signal + ")"
	}
	if len(r.Void) > 0 {
		s += ", void: " + strings.Join(r.Void, "; ")
	}
	return s
}
