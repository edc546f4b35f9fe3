package cachepolicy

// ranked keeps each layer's residents in ascending order of worth: score,
// then time of last use. Scores change only on the layer's own turn, so the
// order is mended once a turn by a pass that is linear on a nearly sorted list.
type ranked struct {
	state
	score []float64 // by entry
	list  [][]int32 // layer -> entries, least worth first
}

func newRanked(base state) ranked {
	r := ranked{state: base, score: make([]float64, base.layers*base.experts), list: make([][]int32, base.layers)}
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

// mend restores the order of a layer's list after its scores changed.
func (r *ranked) mend(layer int) {
	list := r.list[layer]
	for n := 1; n < len(list); n++ {
		i := list[n]
		at := n
		for at > 0 && r.less(i, list[at-1]) {
			list[at] = list[at-1]
			at--
		}
		list[at] = i
	}
}

func (r *ranked) insert(layer int, expert int32) bool {
	i := r.index(layer, expert)
	if r.resident[i] {
		return false
	}
	r.resident[i] = true
	list := append(r.list[layer], i)
	at := len(list) - 1
	for at > 0 && r.less(i, list[at-1]) {
		list[at] = list[at-1]
		at--
	}
	list[at] = i
	r.list[layer] = list
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
