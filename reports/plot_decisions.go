package reports

import (
	"fmt"

	"gonum.org/v1/plot/vg"

	"github.com/bmoe/bmoe/results/record"
)

// decisionsDrawn bounds the rows of the plot; the table has all.
const decisionsDrawn = 16

// decisionsFigure shows what each planned value that was tried gained against
// its alternative: right of the line it earned its keep. A whole plan is no one
// decision, and would set the scale.
func decisionsFigure(list []decision) (Figure, bool, error) {
	var drawn []decision
	for _, dec := range list {
		if dec.change.Pairs > 0 && dec.Knob != wholePlan {
			drawn = append(drawn, dec)
		}
	}
	more := max(len(drawn)-decisionsDrawn, 0)
	drawn = drawn[more:]
	if len(drawn) == 0 {
		return Figure{}, false, nil
	}
	labels := make(names, len(drawn))
	all := make([]record.Comparison, len(drawn))
	var axis changes
	for i, dec := range drawn {
		labels[i] = fmt.Sprintf("%s %s (%.4s): %s, n = %d", dec.Knob, plainValue(dec.Value), short(dec.experiment.ID), dec.judgement, dec.change.Pairs)
		all[i] = dec.change
		axis.hold(dec.change.Effect, dec.change.Lo, dec.change.Hi)
	}
	p := newPlot(fmt.Sprintf("What planned values gained, n = %s", countOf(len(drawn))), "", "")
	axis.axis(p, "rate", labels)
	if err := axis.level(p, 0, 0); err != nil {
		return Figure{}, false, err
	}
	for i := range all {
		if err := axis.interval(p, all[i], float64(i)); err != nil {
			return Figure{}, false, err
		}
	}
	caption := fmt.Sprintf("What planned values gained against their alternatives, n = %s, %s: square and bar are the estimate and its interval (%s); right of the line the value pays. In brackets the experiment's id begins: the table names the alternative.",
		countOf(len(drawn)), pairsOf(all), levels(all))
	if more > 0 {
		caption += fmt.Sprintf(" The %d older are in the table.", more)
	}
	return figure(p, "decisions", caption, vg.Length(3+0.8*float64(len(labels)))*vg.Centimeter), true, nil
}
