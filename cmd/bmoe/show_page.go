package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// page is text laid out for a terminal.
type page struct {
	strings.Builder
	width  int
	colour bool
}

// plain takes out what a terminal would obey: the text may come from another
// machine's database.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}

func (p *page) paint(code, s string) string {
	if !p.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *page) heading(s string) { fmt.Fprintf(p, "\n%s\n", p.paint("1", s)) }

// labelled writes a label and text wrapped beside it.
func (p *page) labelled(label, text string) {
	const gutter = 14
	lines := wrap(plain(text), p.width-gutter-2)
	if len(label) >= gutter { // a long name has a line of its own
		fmt.Fprintf(p, "  %s\n", label)
		label = ""
	}
	for i, line := range lines {
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(p, "  %-*s%s\n", gutter, label, line)
	}
}

// wrap breaks text between words; a word longer than a line is broken.
func wrap(text string, width int) []string {
	width = max(width, 10)
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			cut := []rune(word)
			lines, word = append(lines, string(cut[:width])), string(cut[width:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// run explains a run: what, why, expected, measured, held, left behind.
func (p *page) run(s *record.StoredRun, exp *record.Experiment) {
	r := &s.Run
	fmt.Fprintf(p, "%s  %s\n", p.paint("1", "run "+r.RunID[:min(12, len(r.RunID))]), p.state(r))
	p.labelled("started", r.StartedAt.Local().Format("2006-01-02 15:04:05")+", took "+r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond).String())
	if r.Peer != nil {
		p.labelled("measured by", fmt.Sprintf("%s, %s, %d repetitions, sd %.2f t/s", r.Peer.Tool, r.Peer.Test, r.Peer.Repetitions, r.Peer.StddevTS))
	}
	p.labelled("model", modelWords(&r.Model))
	p.labelled("machine", machineWords(&r.Machine))
	p.labelled("build", strings.Join(slices.DeleteFunc([]string{fmt.Sprintf("%.12s", r.Build.Commit), r.Build.LlamaCPP, r.Build.CPUModule}, func(s string) bool { return s == "" }), ", "))
	if exp != nil {
		p.labelled("experiment", fmt.Sprintf("%.12s: %s", exp.ID, exp.Question))
		p.labelled("", fmt.Sprintf("arm %s, block %d, run %d, attempt %d", s.Slot.Arm, s.Slot.Block+1, s.Slot.Index+1, s.Attempt))
	}
	for _, why := range s.Void {
		p.labelled("void", why)
	}
	if r.Error != "" {
		p.labelled("error", r.Error)
	}
	p.settings(r)
	p.expected(r)
	p.time(r)
	p.held(r)
	p.surroundings(r)
	for _, w := range r.Warnings {
		p.labelled("note", w)
	}
	p.again(r)
}

func (p *page) state(r *record.Run) string {
	if r.State == record.StateDone {
		return p.paint("32", r.State)
	}
	text := plain(r.State)
	if r.Signal != "" {
		text += " by " + plain(r.Signal)
	}
	return p.paint("31", text)
}

func modelWords(m *record.Model) string {
	words := fmt.Sprintf("%s (%s %s, %s)", m.Name, m.Arch, m.Quant, humanize.IBytes(uint64(max(0, m.Bytes))))
	if m.Experts > 0 {
		words += fmt.Sprintf(", %d layers of %d experts, %d used, %s of them routed", m.Layers, m.Experts, m.ExpertsUsed, humanize.IBytes(uint64(max(0, m.RoutedBytes))))
	}
	return words + ", " + ids("id", m.ID)
}

func machineWords(m *record.Machine) string {
	return fmt.Sprintf("%s, %d cores, %s, %s/%s, %s", m.CPU, m.Cores, humanize.IBytes(uint64(max(0, m.RAMBytes))), m.OS, m.Arch, ids("id", m.ID))
}

// settings shows the knobs that are not at their default, with the reason of
// those a plan set.
func (p *page) settings(r *record.Run) {
	p.heading("Settings, where not the default")
	why := map[string]planner.Decision{}
	if r.Plan != nil {
		for _, d := range r.Plan.Decisions {
			why[d.Knob] = d
		}
	}
	def := config.Default()
	for _, k := range config.Table() {
		value := k.Get(&r.Config)
		if value == k.Get(&def) {
			continue
		}
		text := shorten(value, 200)
		if d, ok := why[k.Name]; ok {
			text += fmt.Sprintf("  [%s] %s", d.Provenance, d.Brief)
		} else if _, ok := r.Pins[k.Name]; ok {
			text += "  [operator]"
		}
		p.labelled(k.Name, text)
	}
	if r.Plan != nil && r.Plan.Declined {
		p.labelled("declined", "no plan fitted; this is what a run does anyway")
	}
}

// shorten cuts a long prompt.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "..."
	}
	return s
}

// expected sets what was predicted beside what was measured.
func (p *page) expected(r *record.Run) {
	p.heading("Predicted and measured")
	m := &r.Measured
	var pred planner.Prediction
	if r.Prediction != nil {
		pred = r.Prediction.Prediction
	}
	streamed := r.Stats.Lookups > 0 || r.Stats.DecodeLookups > 0
	p.compare(quantity{"decode", "%.4g", "s/token", 1}, pred.DecodeSPerToken, m.DecodeSPerToken, m.DecodeSPerToken > 0)
	p.compare(quantity{"prompt", "%.4g", "t/s", 1}, pred.PrefillTokensPerS, m.PrefillTokensPerS, m.PrefillTokensPerS > 0)
	p.compare(quantity{"hit rate", "%.1f", "%", 100}, pred.HitRate, m.HitRate, streamed)
	p.compare(quantity{"read", "%.1f", "MiB/token", 1. / (1 << 20)}, pred.BytesPerToken, m.BytesPerToken, streamed)
	if r.Prediction == nil {
		return
	}
	at := r.Prediction.MadeAt
	when := "before the run"
	if at.After(r.StartedAt) {
		when = "after the run began: it confirms nothing"
	}
	p.labelled("written down", at.Local().Format("2006-01-02 15:04:05")+", "+when)
	if r.Prediction.Falsifier != "" {
		p.labelled("refuted if", r.Prediction.Falsifier)
	}
	if pred.Dominant != "" {
		p.labelled("decided by", pred.Dominant)
	}
}

// quantity says how a predicted quantity is printed.
type quantity struct {
	name, format, unit string
	scale              float64
}

func (p *page) compare(q quantity, e planner.Estimate, measured float64, known bool) {
	number := func(v float64) string { return fmt.Sprintf(q.format, v*q.scale) }
	got := "not measured"
	if known {
		got = number(measured) + " " + q.unit
	}
	if !e.Known {
		p.labelled(q.name, got)
		return
	}
	text := fmt.Sprintf("%s, predicted %s [%s, %s] %s", got, number(e.Point), number(e.Lo), number(e.Hi), q.unit)
	switch {
	case !known:
	case measured >= e.Lo && measured <= e.Hi:
		text += ": inside"
	default:
		text += ": outside"
	}
	p.labelled(q.name, text)
}

// time splits a token's time, and shows how it went along.
func (p *page) time(r *record.Run) {
	if r.Measured.DecodeTokens == 0 && r.Measured.LoadS == 0 {
		return
	}
	p.heading("Where the time went")
	if r.Measured.LoadS > 0 {
		p.labelled("load", fmt.Sprintf("%.3g s", r.Measured.LoadS))
	}
	if r.Measured.TTFTS > 0 {
		p.labelled("first token", fmt.Sprintf("after %.3g s", r.Measured.TTFTS))
	}
	c := &r.Stats
	wait := c.WaitRouteS + c.WaitGateS + c.WaitUpS + c.WaitDownS
	if total := wait + c.ManageS + c.ComputeS; total > 0 {
		for _, part := range []struct {
			name string
			s    float64
		}{{"compute", c.ComputeS}, {"wait", wait}, {"management", c.ManageS}} {
			bar := strings.Repeat("#", max(0, int(part.s/total*float64(max(10, p.width-38))+0.5)))
			p.WriteString(strings.TrimRight(fmt.Sprintf("  %-14s%5.1f %%  %8.3g s  %s", part.name, 100*part.s/total, part.s, bar), " ") + "\n")
		}
	}
	if len(r.TokenNS) > 1 {
		p.labelled("per token", spark(r.TokenNS, p.width-16)+"  "+tokenWords(r.TokenNS))
	}
}

func tokenWords(ns []int64) string {
	sorted := slices.Sorted(slices.Values(ns))
	at := func(q float64) time.Duration {
		return time.Duration(sorted[int(q*float64(len(sorted)-1))]).Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("median %v, p95 %v, slowest %v", at(0.5), at(0.95), at(1))
}

// spark draws values as columns of eight heights, from zero, averaging where
// there are more than fit.
func spark(ns []int64, width int) string {
	width = min(max(width, 10), len(ns))
	means := make([]float64, width)
	top := 0.0
	for i := range means {
		from, to := i*len(ns)/width, (i+1)*len(ns)/width
		for _, v := range ns[from:to] {
			means[i] += float64(v) / float64(to-from)
		}
		top = max(top, means[i])
	}
	var b strings.Builder
	for _, m := range means {
		level := 0
		if top > 0 && m > 0 {
			level = min(7, int(m/top*8))
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[level])
	}
	return b.String()
}

func (p *page) held(r *record.Run) {
	c := &r.Stats
	p.heading("What it held and read")
	if r.Measured.RSSBytes > 0 {
		p.labelled("resident", fmt.Sprintf("%s at most, %d major faults", size(r.Measured.RSSBytes), r.Measured.MajorFaults))
	}
	if c.CacheBudgetBytes > 0 {
		p.labelled("expert cache", fmt.Sprintf("%s of a budget of %s, %s locked", size(c.CacheResidentBytes), size(c.CacheBudgetBytes), size(c.CacheLockedBytes)))
	}
	if c.Lookups > 0 {
		p.labelled("lookups", fmt.Sprintf("%d: %d hits, %d misses, %d evictions", c.Lookups, c.Hits, c.Misses, c.Evictions))
		p.labelled("read", fmt.Sprintf("%s in %d reads (lanes used: %d); %s of it again after an eviction", size(c.BytesRead), c.Reads, c.Lanes, size(c.BytesReread)))
	}
	if refused := c.CachePinRefusedBytes + c.DensePinRefusedBytes; refused > 0 {
		p.labelled("refused", size(refused)+" could not be locked")
	}
	for _, x := range r.Reserved {
		p.labelled("reserved", x.String())
	}
	if r.Plan == nil {
		return
	}
	for _, row := range r.Plan.Ledger {
		text := fmt.Sprintf("%s  %s", size(row.Bytes), row.Row)
		if row.Ceiling != "" {
			text += " (" + row.Ceiling + ")"
		}
		p.labelled("planned", text)
	}
}

func size(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

func (p *page) surroundings(r *record.Run) {
	p.heading("Surroundings")
	for _, e := range []struct {
		when string
		env  *record.Environment
	}{{"before", &r.EnvBefore}, {"after", &r.EnvAfter}} {
		if e.env.At.IsZero() {
			continue
		}
		text := fmt.Sprintf("%s available, load %.2f", size(e.env.MemAvailable), e.env.Load1)
		if e.env.CgroupLimit > 0 {
			text += ", limited to " + size(e.env.CgroupLimit)
		}
		if e.env.TempC > 0 {
			text += fmt.Sprintf(", %.0f C", e.env.TempC)
		}
		if e.env.CachedModelFrac >= 0 && e.when == "before" {
			text += fmt.Sprintf(", %.0f %% of the model file in the page cache", 100*e.env.CachedModelFrac)
		}
		p.labelled(e.when, text)
	}
}

// again says how to repeat the run.
func (p *page) again(r *record.Run) {
	if r.Peer != nil || r.Config.Model == "" {
		return
	}
	p.heading("Again")
	args := config.Args(&r.Config)
	if r.Plan != nil && len(r.Plan.Reproduce) > 0 {
		args = r.Plan.Reproduce
	}
	p.command(append([]string{"bmoe", "run"}, args...))
}

// command writes a command line that can be pasted: it goes on after a
// backslash, and only between words, so that a long one may be too wide.
func (p *page) command(args []string) {
	line := " "
	for i, arg := range args {
		word := plain(shellQuote(arg))
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word)+len(" \\") > p.width {
			fmt.Fprintf(p, "%s \\\n", line)
			line = "   "
		}
		line += " " + word
	}
	fmt.Fprintln(p, line)
}

// shellQuote leaves a plain word as it is.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
