package planner

import "math"

// layerReads says when the reads of one layer's missing experts are in.
// done[m][p] is the time, seconds after routing, at which projection p of m
// missing experts has been read: reads are asked for in the order in which the
// projections are multiplied, so the first one's do not wait for the last's.
type layerReads struct {
	layers float64
	done   [][]float64
	busy   []float64 // by m: seconds the lanes are busy
}

// layerReads prices a layer's reads from the drive's curve, on the lanes in
// use; repack is seconds per byte that laying a slice out anew adds. False where
// the drive has no price.
func (st *planning) layerReads(repack float64) (layerReads, bool) {
	r := layerReads{layers: float64(max(1, st.m.layers))}
	n, used := int(max(1, st.m.projections())), int(max(1, st.m.used))
	slice := float64(st.m.cycle) / r.layers / float64(n*used)
	points := st.laneRates()
	buffered := st.p.Storage.Buffered.Or(0)
	through := !st.cfg.ODirect && buffered > 0
	if !through && len(points) == 0 {
		return r, false
	}
	read := func(requests int) float64 {
		seconds := float64(requests) * slice / max(buffered, 1)
		if !through {
			seconds = readSeconds(points, st.cfg.IOThreads, int64(math.Ceil(slice)), float64(requests))
		}
		return st.readsScale()*seconds + repack*slice*float64(requests)
	}
	for m := range used + 1 {
		at := make([]float64, n)
		for p := range n {
			// What is served together ends together: with more lanes than one
			// projection's requests, later projections share the drive with it.
			at[p] = read(max((p+1)*m, min(st.cfg.IOThreads, n*m)))
		}
		r.done, r.busy = append(r.done, at), append(r.busy, read(n*m))
	}
	return r, true
}

// readsScale is how much longer reads took under compute than the probe alone
// saw, as far as earlier runs measured it.
func (st *planning) readsScale() float64 {
	if v, ok := st.p.Overheads.ReadsScale.Get(); ok && v > 0 {
		return v
	}
	return 1
}

// wait is the time a layer with m missing experts waits for reads beside its
// computing, which takes c seconds a projection. Overlapped, a projection's
// matmul runs while the next one's slices are read.
func (r *layerReads) wait(m int, c, scale float64, overlap bool) float64 {
	at := r.done[m]
	if !overlap {
		return scale * at[len(at)-1]
	}
	now := 0.0
	for _, done := range at {
		now = max(now, scale*done) + c
	}
	return now - c*float64(len(at))
}

// expect is the mean over a token's layers of what f is at m missing experts,
// summed over the layers. Each of a layer's picks misses by itself with the
// miss share: reads of a layer that misses twice cannot hide behind a layer that
// misses nothing, so the mean of the waits is more than the wait of the mean.
func (r *layerReads) expect(miss float64, f func(m int) float64) float64 {
	miss = min(1, max(0, miss))
	n := len(r.done) - 1
	var sum float64
	for m := range n + 1 {
		if p := binomial(n, m, miss); p > 0 {
			sum += p * f(m)
		}
	}
	return sum * r.layers
}

// binomial is the chance of m successes in n trials.
func binomial(n, m int, p float64) float64 {
	switch {
	case p <= 0 && m == 0, p >= 1 && m == n:
		return 1
	case p <= 0, p >= 1:
		return 0
	}
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(m + 1))
	c, _ := math.Lgamma(float64(n - m + 1))
	return math.Exp(a - b - c + float64(m)*math.Log(p) + float64(n-m)*math.Log1p(-p))
}
