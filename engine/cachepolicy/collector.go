package cachepolicy

// Collector reduces the ids of one layer's batch to the distinct experts that
// Touch wants. It reuses its buffers: a result is valid until the next call.
type Collector struct {
	last   []int32 // expert -> 1 + index of its last occurrence
	ids    []int32
	counts []int32
	count  []int32
}

// NewCollector returns a Collector for layers of experts experts.
func NewCollector(experts int) *Collector {
	return &Collector{
		last: make([]int32, experts), count: make([]int32, experts),
		ids: make([]int32, 0, experts), counts: make([]int32, 0, experts),
	}
}

// Distinct returns the distinct experts among picks in the order of their last
// occurrence, and how often each occurs. picks are a batch's ids in token
// order; those out of range are left out.
func (c *Collector) Distinct(picks []int32) (ids, counts []int32) {
	c.ids, c.counts = c.ids[:0], c.counts[:0]
	for n, e := range picks {
		if uint32(e) < uint32(len(c.last)) {
			c.last[e] = int32(n) + 1
			c.count[e]++
		}
	}
	for n, e := range picks {
		if uint32(e) < uint32(len(c.last)) && c.last[e] == int32(n)+1 {
			c.ids = append(c.ids, e)
			c.counts = append(c.counts, c.count[e])
			c.last[e], c.count[e] = 0, 0
		}
	}
	return c.ids, c.counts
}
