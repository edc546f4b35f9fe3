package analysis

import (
	"math"
	"slices"
)

// Observation is one run of an experiment as the nuisance estimates see it.
type Observation struct {
	Run     int     // place in the whole schedule
	Block   int     // runs that are compared with each other
	Pos     int     // place within the block
	Arm     string  // level of the lever
	LogRate float64 // ln of the metric, larger is better
}

// Slope is a robust trend with its interval.
type Slope struct {
	Estimate float64
	Interval
}

// Drift is the Theil-Sen slope of the log rate over the run index after each
// arm's mean is taken out, with Sen's interval from the exact null distribution
// of Kendall's statistic. ok is false for too few runs or too low a level.
func Drift(obs []Observation, level float64) (Slope, bool) {
	y := residuals(obs, func(o Observation) string { return o.Arm })
	var slopes []float64
	for i := range obs {
		for j := i + 1; j < len(obs); j++ {
			if dx := obs[j].Run - obs[i].Run; dx != 0 {
				slopes = append(slopes, (y[j]-y[i])/float64(dx))
			}
		}
	}
	if len(slopes) == 0 {
		return Slope{Estimate: math.NaN()}, false
	}
	slices.Sort(slopes)
	k, attained, ok := kendallCut(len(obs), level)
	k = min(k, len(slopes)/2)
	return Slope{
		Estimate: medianSorted(slopes),
		Interval: Interval{Lo: slopes[k], Hi: slopes[len(slopes)-1-k], Level: attained, Cut: k},
	}, ok
}

// kendallCut is how many of the sorted slopes to leave out at each end.
func kendallCut(n int, level float64) (k int, attained float64, ok bool) {
	counts := inversionCounts(n)
	attained = 1 - 2*tail(counts, 0)
	if attained < level {
		return 0, max(attained, 0), false
	}
	for k < len(counts)/2 {
		next := 1 - 2*tail(counts, k+1)
		if next < level {
			break
		}
		k, attained = k+1, next
	}
	return k, attained, true
}

// inversionCounts returns, for each number of inversions, the share of the
// orders of n values that have it: Kendall's null distribution.
func inversionCounts(n int) []float64 {
	p := []float64{1}
	for m := 2; m <= n; m++ {
		next := make([]float64, len(p)+m-1)
		for i, v := range p {
			for j := range m {
				next[i+j] += v / float64(m)
			}
		}
		p = next
	}
	return p
}

// SlotEffect is by how much, on the log scale, a block's first run is faster
// than its later ones once the arms' own means are taken out, with its
// signed-rank interval over the blocks.
func SlotEffect(obs []Observation, level float64) (Slope, bool) {
	y := residuals(obs, func(o Observation) string { return o.Arm })
	var d []float64
	for _, block := range byBlock(obs) {
		first, rest, n := math.NaN(), 0.0, 0
		for _, i := range block {
			if obs[i].Pos == 0 {
				first = y[i]
				continue
			}
			rest += y[i]
			n++
		}
		if n > 0 && !math.IsNaN(first) {
			d = append(d, first-rest/float64(n))
		}
	}
	c, ok := SignedRankInterval(d, level)
	return Slope{Estimate: HodgesLehmann(d), Interval: c}, ok
}

// PairNoise is the standard deviation of the paired log ratios d once the slot
// effect is taken out: armFirst[i] says that the pair's arm ran before its
// baseline. Pairs differ by the slot effect's sign, which is not noise.
func PairNoise(d []float64, armFirst []bool) float64 {
	mean := HodgesLehmann(d)
	signed := make([]float64, len(d))
	for i := range d {
		signed[i] = (d[i] - mean) * sign(armFirst[i])
	}
	slot := HodgesLehmann(signed)
	rest := make([]float64, len(d))
	for i := range d {
		rest[i] = d[i] - slot*sign(armFirst[i])
	}
	return StdDev(rest)
}

func sign(positive bool) float64 {
	if positive {
		return 1
	}
	return -1
}

// residuals of the log rates from the mean of their group.
func residuals(obs []Observation, group func(Observation) string) []float64 {
	sum, n := map[string]float64{}, map[string]float64{}
	for _, o := range obs {
		sum[group(o)] += o.LogRate
		n[group(o)]++
	}
	y := make([]float64, len(obs))
	for i, o := range obs {
		y[i] = o.LogRate - sum[group(o)]/n[group(o)]
	}
	return y
}

// byBlock groups the observations' indices, blocks in order.
func byBlock(obs []Observation) [][]int {
	groups := map[int][]int{}
	var blocks []int
	for i, o := range obs {
		if _, seen := groups[o.Block]; !seen {
			blocks = append(blocks, o.Block)
		}
		groups[o.Block] = append(groups[o.Block], i)
	}
	slices.Sort(blocks)
	out := make([][]int, len(blocks))
	for i, b := range blocks {
		out[i] = groups[b]
	}
	return out
}
