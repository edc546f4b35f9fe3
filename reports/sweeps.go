package reports

import (
	"fmt"
	"strconv"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// sweepsShown is how many experiments have a section of their own, with plots:
// a team's ledger holds a thousand, and nobody reads a thousand.
const sweepsShown = 16

// sweepSections is one section for each of the newest experiments, oldest
// first, and one that counts those left out.
func (d *Data) sweepSections() ([]Section, error) {
	var out []Section
	shown := d.index().experiments
	if more := len(shown) - sweepsShown; more > 0 {
		shown = shown[more:]
		out = append(out, Section{ID: "older", Title: "Older experiments", Blocks: []Block{Text(fmt.Sprintf(
			"The newest %d of %d experiments have a section and plots below. The other %d are in Findings; `bmoe report --experiment ID --out DIR` draws one of them.",
			sweepsShown, more+sweepsShown, more))}})
	}
	for _, e := range shown {
		section, err := d.sweepSection(e)
		if err != nil {
			return nil, fmt.Errorf("experiment %s: %w", short(e.ID), err)
		}
		out = append(out, section)
	}
	return out, nil
}

func (d *Data) sweepSection(e record.Experiment) (Section, error) {
	s := Section{ID: "experiment-" + short(e.ID), Title: experimentTitle(e)}
	runs := d.index().ofExperiment[e.ID]
	s.Blocks = append(s.Blocks, Text(e.Question), Text(design(e, runs)))
	if void := d.index().voided[e.ID]; void != "" {
		s.Blocks = append(s.Blocks, Text("VOID: "+void))
	}
	v, ok := d.verdict(e.ID)
	if !ok {
		s.Blocks = append(s.Blocks, Text(fmt.Sprintf("No verdict stands: %d of %d runs are stored.", len(runs), len(e.Schedule))))
		return s, nil
	}
	if sentences := sentencesOf(v); len(sentences) > 0 {
		s.Blocks = append(s.Blocks, List(sentences))
	}
	s.Blocks = append(s.Blocks, comparisonTable(e, v.Comparisons, runs))
	if len(v.Predictions) > 0 {
		s.Blocks = append(s.Blocks, predictionTable(e, v.Predictions, runs))
	}
	if len(v.Warnings) > 0 {
		s.Blocks = append(s.Blocks, Text("Warnings:"), List(v.Warnings))
	}
	for _, plot := range []func(record.Experiment, record.Verdict, []*record.StoredRun) (Figure, bool, error){armsFigure, driftFigure} {
		f, ok, err := plot(e, v, runs)
		if err != nil {
			return s, err
		}
		if ok {
			s.Blocks = append(s.Blocks, f)
		}
	}
	return s, nil
}

func experimentTitle(e record.Experiment) string {
	switch {
	case e.Lever != "":
		return fmt.Sprintf("Sweep of %s (%s)", e.Lever, short(e.ID))
	case e.Kind == kindAA:
		return fmt.Sprintf("A/A control (%s)", short(e.ID))
	}
	return fmt.Sprintf("%s (%s)", e.Kind, short(e.ID))
}

// design says how an experiment was made and on what.
func design(e record.Experiment, runs []*record.StoredRun) string {
	text := fmt.Sprintf("Registered %s: %s design, %s, seed %d, metric %s, margin %s %%, alpha %s",
		minute(e.RegisteredAt), e.Design, analysis.Count(e.Pairs, "pair"), e.Seed, e.Metric, percent(e.Margin), digits(e.Alpha, 2))
	if e.CacheState != "" {
		text += ", " + e.CacheState + " page cache"
	}
	if e.Falsifier != "" {
		text += ". It would be refuted by: " + e.Falsifier
	}
	from, to := span(runs)
	return text + fmt.Sprintf(". %s; %s; n = %s.", setting{e.Machine, e.Build, e.Model}.label(), dates(from, to), analysis.Count(len(runs), "run"))
}

func sentencesOf(v record.Verdict) (out []string) {
	for _, c := range v.Comparisons {
		out = append(out, sentence(c))
	}
	return out
}

// sentence says a comparison in plain words, verdict first when it is no win.
func sentence(c record.Comparison) string {
	text := c.Sentence
	switch {
	case (c.Pairs == 0 || c.Verdict == "void") && c.Reason != "": // no finding: say why
		text = fmt.Sprintf("%s against %s: %s", c.Arm, c.Baseline, c.Reason)
	case text == "":
		text = fmt.Sprintf("%s against %s: %s %% (%s %% CI %s to %s %%, %s)", c.Arm, c.Baseline,
			signedPercent(c.Effect), percent(c.Level), signedPercent(c.Lo), signedPercent(c.Hi), analysis.Count(c.Pairs, "pair"))
	}
	return c.Verdict + ": " + text
}

func comparisonTable(e record.Experiment, list []record.Comparison, runs []*record.StoredRun) Table {
	from, to := span(runs)
	against, one := "", oneBaseline(record.Verdict{Comparisons: list})
	if one {
		against = " against " + e.Baseline
	}
	t := Table{
		Caption: fmt.Sprintf("Change of the %s%s, positive is better. %s; %s; n = %s, intervals at the level they attain.",
			rateName(e.Metric), against, setting{e.Machine, e.Build, e.Model}.label(), dates(from, to), analysis.Count(len(runs), "run")),
		Columns: columns("arm", "#pairs", "#for:against", "#change %", "#interval %", "#level %", "#p", "#p (Holm)", "verdict", "why"),
	}
	for _, c := range list {
		arm := c.Arm
		if !one {
			arm += " against " + c.Baseline
		}
		t.Rows = append(t.Rows, []string{
			arm, strconv.Itoa(c.Pairs), fmt.Sprintf("%d:%d", c.Positive, c.Negative), change(c),
			interval(c), level(c), digits(c.P, 2), digits(c.PHolm, 2), c.Verdict, c.Reason,
		})
	}
	return t
}

// change writes an estimate; nothing was estimated without a pair.
func change(c record.Comparison) string {
	if c.Pairs == 0 {
		return none
	}
	return signedPercent(c.Effect)
}

// level writes the level an interval attains.
func level(c record.Comparison) string {
	if c.Pairs == 0 || c.Level == 0 {
		return none
	}
	return percent(c.Level)
}

func interval(c record.Comparison) string {
	if c.Pairs == 0 || c.Level == 0 {
		return none
	}
	return fmt.Sprintf("[%s, %s]", signedPercent(c.Lo), signedPercent(c.Hi))
}

func predictionTable(e record.Experiment, list []record.Comparison, runs []*record.StoredRun) Table {
	from, to := span(runs)
	t := Table{
		Caption: fmt.Sprintf("Measured against what the plan predicted before the first run, positive is faster than predicted. %s; %s; n = %s, intervals at the level they attain.",
			setting{e.Machine, e.Build, e.Model}.label(), dates(from, to), analysis.Count(len(runs), "run")),
		Columns: columns("arm", "#runs", "#measured/predicted - 1, %", "#interval %", "#level %", "verdict", "why"),
	}
	for _, c := range list {
		t.Rows = append(t.Rows, []string{
			c.Arm, strconv.Itoa(c.Pairs), change(c), interval(c), level(c), c.Verdict, c.Reason,
		})
	}
	return t
}
