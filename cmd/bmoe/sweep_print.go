package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/experiments"
	"github.com/bmoe/bmoe/results/record"
)

// sweepSchema names the shape of the document `bmoe sweep --json` prints.
const sweepSchema = "bmoe.sweep/1"

// sweepDocument is what --json prints.
type sweepDocument struct {
	Schema       string              `json:"schema"`
	ExperimentID string              `json:"experiment_id"`
	Question     string              `json:"question"`
	Falsifier    string              `json:"falsifier"`
	Kind         string              `json:"kind"`
	Lever        string              `json:"lever"`
	Metric       string              `json:"metric"`
	Design       string              `json:"design"`
	Seed         int64               `json:"seed"`
	Pairs        int                 `json:"pairs"`
	Margin       float64             `json:"margin"`
	MDE          float64             `json:"mde"` // before running, ratio less one
	Arms         []sweepArm          `json:"arms"`
	Comparisons  []record.Comparison `json:"comparisons"`
	Predictions  []record.Comparison `json:"predictions,omitempty"`
	Drift        *record.Trend       `json:"drift,omitempty"`
	Slot         *record.Trend       `json:"slot,omitempty"`
	Warnings     []string            `json:"warnings"`
	Schedule     []record.Slot       `json:"schedule,omitempty"` // of a dry run
	CostS        float64             `json:"cost_s,omitempty"`   // expected, of a dry run; 0 unknown
}

// sweepArm is an arm and how its runs went.
type sweepArm struct {
	Name     string         `json:"name"`
	Value    string         `json:"value"`
	Runs     int            `json:"runs"`
	Outcomes map[string]int `json:"outcomes"` // by state
	Rate     float64        `json:"rate"`     // mean, of the metric; 0: none
	RateSD   float64        `json:"rate_sd"`
	Note     string         `json:"note,omitempty"` // what became of a run that died
}

func sweepDocumentOf(e record.Experiment, v record.Verdict, runs []record.StoredRun) sweepDocument {
	d := sweepDocument{
		Schema: sweepSchema, ExperimentID: e.ID, Question: e.Question, Falsifier: e.Falsifier, Kind: e.Kind, Lever: e.Lever,
		Metric: e.Metric, Design: e.Design, Seed: e.Seed, Pairs: e.Pairs, Margin: e.Margin, MDE: experiments.TermsOf(&e).MDE,
		Comparisons: v.Comparisons, Predictions: v.Predictions, Drift: v.Drift, Slot: v.Slot, Warnings: v.Warnings,
	}
	if d.Comparisons == nil {
		d.Comparisons = []record.Comparison{}
	}
	if d.Warnings == nil {
		d.Warnings = []string{}
	}
	d.Arms = sweepArms(e, runs)
	return d
}

func sweepArms(e record.Experiment, runs []record.StoredRun) []sweepArm {
	var arms []sweepArm
	for _, a := range experiments.Summarise(e, runs) {
		arms = append(arms, sweepArm{
			Name: a.Arm.Name, Value: a.Arm.Value, Runs: a.Runs, Outcomes: a.Outcomes, Rate: a.Mean, RateSD: a.SD, Note: a.Note,
		})
	}
	return arms
}

// writeSweep prints the finding for people.
func writeSweep(w io.Writer, e record.Experiment, v record.Verdict, runs []record.StoredRun) error {
	fmt.Fprintf(w, "%s\nexperiment %s, %s, seed %d\n\n", e.Question, experiments.Short(e.ID), e.Design, e.Seed)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "%s\truns\t%s ± sd\t\t\n", armHeader(e), experiments.RateUnit(e.Metric))
	for _, a := range sweepArms(e, runs) {
		rate := "-"
		if a.Rate > 0 {
			rate = fmt.Sprintf("%.2f ± %.2f", a.Rate, a.RateSD)
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t\n", a.Name, a.Runs, rate, a.Note)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, c := range v.Comparisons {
		writeComparison(w, e, c)
	}
	for _, c := range v.Predictions {
		fmt.Fprintf(w, "\nprediction of %s: %s\n    %s\n", c.Arm, c.Verdict, c.Reason)
		if c.Sentence != "" {
			fmt.Fprintf(w, "    %s\n", c.Sentence)
		}
	}
	if len(v.Warnings) > 0 {
		fmt.Fprintln(w)
	}
	for _, text := range v.Warnings {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
	writeRetest(w, e, v)
	return nil
}

func armHeader(e record.Experiment) string {
	if e.Lever != "" {
		return e.Lever
	}
	return "arm"
}

func writeComparison(w io.Writer, e record.Experiment, c record.Comparison) {
	sentence := c.Sentence
	if sentence == "" {
		sentence = fmt.Sprintf("%s against %s", c.Arm, c.Baseline)
	}
	fmt.Fprintf(w, "\n%s: %s\n    %s\n", sentence, c.Verdict, c.Reason)
	if c.Pairs > 0 {
		favour := max(c.Positive, c.Negative)
		side := c.Arm
		if c.Negative > c.Positive {
			side = c.Baseline
		}
		fmt.Fprintf(w, "    %d of %d pairs favour %s; p %.3g, Holm %.3g", favour, c.Pairs, side, c.P, c.PHolm)
		if c.MDE > 0 {
			fmt.Fprintf(w, "; these pairs would show %.1f %%", 100*c.MDE)
		}
		fmt.Fprintln(w)
	}
	if c.Predicted != "" {
		fmt.Fprintf(w, "    predicted %s: %s, %s\n", experiments.BandWords(*e.Band), c.Predicted, c.PredictedReason)
	}
}

// writeRetest reminds that the best of several is partly lucky.
func writeRetest(w io.Writer, e record.Experiment, v record.Verdict) {
	if e.Kind != experiments.KindSweep || len(v.Comparisons) < 2 {
		return
	}
	best := v.Comparisons[0]
	for _, c := range v.Comparisons {
		if c.Verdict == string(analysis.Better) && (best.Verdict != string(analysis.Better) || c.Effect > best.Effect) {
			best = c
		}
	}
	if best.Verdict == string(analysis.Better) {
		fmt.Fprintf(w, "\nThe best of %d is flattered by luck: measure it again with --lever %s --values %s,%s --order-seed %d\n",
			len(e.Arms), e.Lever, best.Baseline, best.Arm, e.Seed+1)
	}
}
