package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// mdeTrials is enough for two figures; the seed is fixed so that the same
// question always has the same answer.
const mdeTrials = 4000

// MDE is the smallest true log ratio that n pairs would tell from 0 with the
// given power, at an interval of the given level, when the paired log ratios
// scatter normally with standard deviation sd. +Inf when n pairs cannot attain
// the level.
//
// The interval excludes 0 when its lower end, the k-th Walsh average, does. A
// shift of the differences shifts that end by as much, so the answer is how far
// below 0 the end lies, in all but 1-power of samples without an effect.
func MDE(sd float64, n int, level, power float64) float64 {
	k, _, ok := Cut(n, level)
	if !ok {
		return math.Inf(1)
	}
	return -sd * quantile(lowerEnds(n, k), 1-power)
}

type design struct{ n, k int }

// ends remembers the simulated ends by design: they are the same every time.
var ends sync.Map

// lowerEnds are the k-th Walsh averages of samples of n standard normal
// differences, sorted.
func lowerEnds(n, k int) []float64 {
	if known, ok := ends.Load(design{n, k}); ok {
		return known.([]float64)
	}
	rng := rand.New(rand.NewPCG(uint64(n), uint64(k)))
	low := make([]float64, mdeTrials)
	d := make([]float64, n)
	for t := range low {
		for i := range d {
			d[i] = rng.NormFloat64()
		}
		low[t] = WalshAverages(d)[k-1]
	}
	slices.Sort(low)
	ends.Store(design{n, k}, low)
	return low
}

func quantile(sorted []float64, q float64) float64 {
	return sorted[min(int(math.Floor(q*float64(len(sorted)))), len(sorted)-1)]
}

// StdDev is the sample standard deviation of x; NaN for fewer than two.
func StdDev(x []float64) float64 {
	n := float64(len(x))
	if n < 2 {
		return math.NaN()
	}
	var sum, squares float64
	for _, v := range x {
		sum += v
	}
	for _, v := range x {
		squares += (v - sum/n) * (v - sum/n)
	}
	return math.Sqrt(squares / (n - 1))
}
