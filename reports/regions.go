package reports

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/analysis"
)

// A generated region of a document stands between two comments,
//
//	<!-- bmoe:begin NAME -->
//	<!-- bmoe:end NAME -->
//
// each on its own line for a section of the report, or both within one line for
// a single value (NAME is then value:...). What is between them is rewritten.
const (
	regionBegin = "<!-- bmoe:begin "
	regionEnd   = "<!-- bmoe:end "
	regionClose = " -->"
)

// Regions are what regions can be filled with, by name.
type Regions map[string]string

// Regions renders every section and value of a report. Figures are linked
// relative to figures, the path from the document to the folder that holds
// them.
func (d *Data) Regions(doc *Document, figures string) (Regions, error) {
	out := Regions{}
	for i := range doc.Sections {
		text, err := doc.Sections[i].Markdown(figures)
		if err != nil {
			return nil, err
		}
		out[doc.Sections[i].ID] = string(text)
	}
	verdicts := Section{Blocks: []Block{d.verdictsTable()}}
	text, err := verdicts.Markdown(figures)
	if err != nil {
		return nil, err
	}
	out["verdicts"] = string(text)
	for name, v := range d.values() {
		out["value:"+name] = v
	}
	return out, nil
}

// verdictsTable is the findings in few columns, for a page that has other things
// to say as well.
func (d *Data) verdictsTable() Table {
	from, to := span(d.index().runs)
	t := Table{
		Caption: fmt.Sprintf("%s; %s; n = %s in all, every comparison of every experiment.", settingsOf(d.index().runs), dates(from, to), analysis.Count(len(d.Runs), "run")),
		Columns: columns("question", "model", "arm", "against", "#pairs", "#change %", "#interval %", "#level %", "verdict"),
	}
	for _, e := range d.index().experiments {
		v, _ := d.verdict(e.ID)
		who := []string{orWord(e.Lever, e.Kind), orWord(e.Model.Name, short(e.Model.ID))}
		for _, cells := range d.outcomes(e, v) {
			t.Rows = append(t.Rows, slices.Concat(who, cells))
		}
	}
	return t
}

// values are the single figures that prose may quote.
func (d *Data) values() map[string]string {
	out := map[string]string{
		"runs":        strconv.Itoa(len(d.Runs)),
		"experiments": strconv.Itoa(len(d.Experiments)),
		"models":      strconv.Itoa(len(d.index().models)),
	}
	machines := map[string]bool{}
	for i := range d.Runs {
		machines[d.Runs[i].Run.Machine.ID] = true
	}
	out["machines"] = strconv.Itoa(len(machines))
	from, to := span(d.index().runs)
	out["dates"] = dates(from, to)
	for _, p := range d.index().storage { // of several machines the last counts
		out["storage-mb-per-s"] = digits(bestRate(storageCurve(p)).BytesPerS/1e6, 4)
	}
	for _, e := range d.index().experiments {
		v, ok := d.verdict(e.ID)
		if !ok || d.index().voided[e.ID] != "" {
			continue
		}
		for _, c := range v.Comparisons {
			for _, name := range []string{short(e.ID), e.Lever} { // by lever the newest counts
				if name != "" {
					out[name+":"+c.Arm] = sentence(c)
				}
			}
		}
	}
	return out
}

// Rewrite fills the regions of a document. The error names the line.
func (r Regions) Rewrite(text []byte) ([]byte, error) {
	var out bytes.Buffer
	rest, line := text, 1
	for {
		i := bytes.Index(rest, []byte(regionBegin))
		if i < 0 {
			if j := bytes.Index(rest, []byte(regionEnd)); j >= 0 && !inCode(rest[:j]) {
				return nil, fmt.Errorf("line %d: a region ends that did not begin", line+bytes.Count(rest[:j], []byte("\n")))
			}
			out.Write(rest)
			return out.Bytes(), nil
		}
		if end := bytes.IndexByte(rest[i:], '\n'); end >= 0 && inCode(rest[:i]) {
			line += bytes.Count(rest[:i+end+1], []byte("\n"))
			out.Write(rest[:i+end+1])
			rest = rest[i+end+1:]
			continue
		}
		line += bytes.Count(rest[:i], []byte("\n"))
		body := rest[i+len(regionBegin):]
		name, after, ok := bytes.Cut(body, []byte(regionClose))
		if !ok || bytes.ContainsAny(name, "\n<>") {
			return nil, fmt.Errorf("line %d: the opening of a region is not closed with %q", line, regionClose)
		}
		end := []byte(regionEnd + string(name) + regionClose)
		old, tail, ok := bytes.Cut(after, end)
		if !ok || bytes.Contains(old, []byte(regionBegin)) {
			return nil, fmt.Errorf("line %d: region %s has no %s", line, name, end)
		}
		fill, err := r.fill(string(name), bytes.Contains(old, []byte("\n")))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		out.Write(rest[:i])
		out.WriteString(regionBegin + string(name) + regionClose + fill)
		out.Write(end)
		line += bytes.Count(old, []byte("\n"))
		rest = tail
	}
}

// inCode reports whether what follows text is an indented code block: there a
// region is only shown.
func inCode(text []byte) bool {
	start := text[bytes.LastIndexByte(text, '\n')+1:]
	return len(start) >= 4 && len(bytes.TrimLeft(start, " ")) == 0
}

func (r Regions) fill(name string, lines bool) (string, error) {
	text, ok := r[name]
	if !ok {
		var known []string
		for k := range r {
			known = append(known, k)
		}
		slices.Sort(known)
		return "", fmt.Errorf("region %q is none of: %s", name, strings.Join(known, ", "))
	}
	if strings.HasPrefix(name, "value:") {
		return text, nil
	}
	if !lines {
		return "", fmt.Errorf("region %q holds lines: put its end on a line of its own", name)
	}
	return "\n" + text, nil
}

// Difference says in which region, and how, two versions of a document differ;
// "" when they do not.
func Difference(old, fresh []byte) string {
	a, b := strings.Split(string(old), "\n"), strings.Split(string(fresh), "\n")
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	if from == len(a) && from == len(b) {
		return ""
	}
	enda, endb := len(a), len(b)
	for enda > from && endb > from && a[enda-1] == b[endb-1] {
		enda--
		endb--
	}
	region := regionAt(a, b, from)
	var out strings.Builder
	fmt.Fprintf(&out, "line %d", from+1)
	if region != "" {
		fmt.Fprintf(&out, ", region %s", region)
	}
	out.WriteString(":\n")
	for _, side := range []struct {
		mark  string
		lines []string
	}{{"-", a[from:enda]}, {"+", b[from:endb]}} {
		for i, l := range side.lines {
			if i == differenceShown {
				fmt.Fprintf(&out, "%s ... %d more lines\n", side.mark, len(side.lines)-i)
				break
			}
			out.WriteString(side.mark + l + "\n")
		}
	}
	return out.String()
}

// regionAt names the region that holds the first difference of two versions, on
// line at; there may be several on a line.
func regionAt(a, b []string, at int) string {
	before := strings.Join(a[:at], "\n")
	if at < len(a) && at < len(b) {
		same := 0
		for same < len(a[at]) && same < len(b[at]) && a[at][same] == b[at][same] {
			same++
		}
		before += "\n" + a[at][:same]
	}
	i := strings.LastIndex(before, regionBegin)
	if i < 0 {
		return ""
	}
	name, _, _ := strings.Cut(before[i+len(regionBegin):], regionClose)
	return name
}

// differenceShown bounds a difference's lines on each side.
const differenceShown = 12
