package cachepolicy

import "math"

// ranked keeps each layer's residents in ascending order of worth: score,
// then time of last use. Scores change only on the layer's own turn, so the
// order is mended once a turn by a pass that is linear on a nearly sorted list.
type ranked struct {
	state
	score []float64 // by entry
	list  [][]int32 // layer -> entries, least worth first
	risen []int32   // room for mend
}

func newRanked(base state) ranked {
	r := ranked{state: base, score: make([]float64, base.layers*base.experts), list: make([][]int32, base.layers), risen: make([]int32, 0, base.experts)}
	backing := make([]int32, base.layers*base.experts)
	for l := range r.list {
		r.list[l] = backing[l*base.experts : l*base.experts : (l+1)*base.experts]
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

// mend restores the order of a layer's list after its scores changed. The
// batch's own entries rise to the far end, past all that stay nearly sorted:
// they are taken out first and put back from the end.
func (r *ranked) mend(layer int) {
	list, score, mark, batch := r.list[layer], r.score, r.mark, r.batch
	risen := r.risen[:0]
	kept := 0
	last := math.Inf(-1)
	for _, i := range list {
		if mark[i] == batch {
			risen = append(risen, i)
			continue
		}
		list[kept] = i
		kept++
		if score[i] <= last {
			r.sink(list[:kept])
			last = score[list[kept-1]]
		} else {
			last = score[i]
		}
	}
	for _, i := range risen {
		list[kept] = i
		kept++
		r.sink(list[:kept])
	}
	r.risen = risen
}

// sink moves the last entry of an otherwise sorted list to its place.
func (r *ranked) sink(list []int32) {
	at := len(list) - 1
	i := list[at]
	for at > 0 && r.less(i, list[at-1]) {
		list[at] = list[at-1]
		at--
	}
	list[at] = i
}

func (r *ranked) insert(layer int, expert int32) bool {
	i := r.index(layer, expert)
	if r.resident[i] {
		return false
	}
	r.resident[i] = true
	r.list[layer] = append(r.list[layer], i)
	r.sink(r.list[layer])
	return true
}

func (r *ranked) remove(layer int, expert int32) bool {
	i := r.index(layer, expert)
	if !r.resident[i] {
		return false
	}
	r.resident[i] = false
	list := r.list[layer]
	at := 0
	for list[at] != i { // victims are near the front
		at++
	}
	copy(list[at:], list[at+1:])
	r.list[layer] = list[:len(list)-1]
	return true
}

// first returns the layer's least worthy evictable entry, or -1.
func (r *ranked) first(layer int) int32 {
	for _, i := range r.list[layer] {
		if r.evictable(i) {
			return i
		}
	}
	return -1
}

func (r *ranked) Yield(layer int, incoming int32) (expert int32, ok bool) {
	in := r.index(layer, incoming)
	for _, i := range r.list[layer] {
		if !r.less(i, in) {
			break
		}
		if r.inBatch(i) && r.pins[i] == 0 {
			_, expert = r.split(i)
			return expert, true
		}
	}
	return 0, false
}
