package cachepolicy

import "math"

// ranked knows each layer's residents and which of them is worth least: the
// smallest score, then the longest unused. That one is looked for when it is
// asked for and remembered until something that bears on it changes, so a turn
// whose experts are all in the cache orders nothing.
type ranked struct {
	state
	score []float64 // by entry
	held  [][]int32 // layer -> its residents, in no order
	place []int32   // resident -> its index in held
	least []int32   // layer -> what first found, or unknown
}

const (
	nobody  = -1 // no resident may be given up
	unknown = -2 // to be looked for
)

func newRanked(base state) ranked {
	n := base.layers * base.experts
	r := ranked{state: base, score: make([]float64, n), held: make([][]int32, base.layers), place: make([]int32, n), least: make([]int32, base.layers)}
	backing := make([]int32, n)
	for l := range r.held {
		r.held[l] = backing[l*base.experts : l*base.experts : (l+1)*base.experts]
		r.least[l] = nobody
	}
	return r
}

// less orders two entries: i is given up before j.
func (r *ranked) less(i, j int32) bool {
	if r.score[i] != r.score[j] {
		return r.score[i] < r.score[j]
	}
	return r.stamp[i] < r.stamp[j]
}

// begin starts a batch: the one before is no longer protected.
func (r *ranked) begin(layer int, ids []int32) {
	r.least[r.turn] = unknown
	r.state.begin(layer, ids)
	r.least[layer] = unknown
}

// Release ends the current batch.
func (r *ranked) Release() {
	r.state.Release()
	r.least[r.turn] = unknown
}

func (r *ranked) insert(layer int, expert int32) bool {
	i := r.index(layer, expert)
	if r.resident[i] {
		return false
	}
	r.resident[i] = true
	r.place[i] = int32(len(r.held[layer]))
	r.held[layer] = append(r.held[layer], i)
	if r.evictable(i) {
		r.least[layer] = unknown
	}
	return true
}

func (r *ranked) remove(layer int, expert int32) bool {
	i := r.index(layer, expert)
	if !r.resident[i] {
		return false
	}
	r.resident[i] = false
	held := r.held[layer]
	last := held[len(held)-1]
	held[r.place[i]], r.place[last] = last, r.place[i]
	r.held[layer] = held[:len(held)-1]
	if r.least[layer] == i {
		r.least[layer] = unknown
	}
	return true
}

// first returns the layer's least worthy evictable entry, or nobody.
func (r *ranked) first(layer int) int32 {
	if r.least[layer] == unknown {
		r.least[layer] = r.find(layer)
	}
	return r.least[layer]
}

// find asks for the score first: it rules nearly every resident out.
func (r *ranked) find(layer int) int32 {
	best, lowest := int32(nobody), math.Inf(1)
	score := r.score
	for _, i := range r.held[layer] {
		s := score[i]
		if s > lowest || !r.evictable(i) || (s == lowest && best != nobody && r.stamp[i] >= r.stamp[best]) {
			continue
		}
		best, lowest = i, s
	}
	return best
}

func (r *ranked) Yield(layer int, incoming int32) (expert int32, ok bool) {
	best := r.index(layer, incoming)
	for _, i := range r.held[layer] {
		if r.inBatch(i) && r.pins[i] == 0 && r.less(i, best) {
			best, ok = i, true
		}
	}
	_, expert = r.split(best)
	return expert, ok
}

// Pin protects an expert from Victim and Yield.
func (r *ranked) Pin(layer int, expert int32) {
	r.pins[r.index(layer, expert)]++
	r.least[layer] = unknown
}

// Unpin takes one Pin back.
func (r *ranked) Unpin(layer int, expert int32) {
	r.pins[r.index(layer, expert)]--
	r.least[layer] = unknown
}
