package experiments

import (
	"fmt"
	"slices"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// ArmSummary is how an arm's judged runs went.
type ArmSummary struct {
	Arm      record.Arm
	Runs     int
	Outcomes map[string]int // by state
	Mean, SD float64        // of the metric, in RateUnit; 0: none
	Note     string         // what became of runs that died
}

// Summarise describes each arm's runs in complete blocks, warm-up left out.
func Summarise(e record.Experiment, runs []record.StoredRun) []ArmSummary {
	blocks := completeBlocks(&e, runs)
	var out []ArmSummary
	for _, a := range e.Arms {
		s := sideOf(a, blocks)
		sum := ArmSummary{Arm: a, Runs: len(s.done) + len(s.lost), Outcomes: map[string]int{}}
		for _, r := range slices.Concat(s.done, s.lost) {
			sum.Outcomes[r.State]++
		}
		var x []float64
		for _, r := range s.done {
			if rate := metrics[e.Metric].rate(&r.Measured); rate > 0 {
				x = append(x, rate)
			}
		}
		sum.Mean, sum.SD = mean(x), finite(analysis.StdDev(x))
		if len(s.lost) > 0 {
			sum.Note = fmt.Sprintf("%d %s: %s", len(s.lost), s.lost[0].State, fate(s.lost[0]))
		}
		out = append(out, sum)
	}
	return out
}

// RateUnit is the unit of a metric's rate.
func RateUnit(metric string) string {
	if metric == MetricDecode || metric == MetricPrefill {
		return "t/s"
	}
	return "1/s"
}

func mean(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
