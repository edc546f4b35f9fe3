package cachepolicy

// state is what every policy keeps per (layer, expert): residency, pins, the
// batch it was last in and when it was last used. Entries are numbered
// layer*experts + expert.
type state struct {
	layers, experts int
	group           []int32   // layer -> group
	members         [][]int32 // group -> its layers, ascending

	resident []bool
	pins     []int32
	mark     []uint32 // number of the last batch the expert was in
	batch    uint32   // number of the current batch; 0 is no batch
	turn     int      // layer of the last batch
	stamp    []uint64 // time of last use
	clock    uint64
}

func newState(layers, experts int, groupOf []int) state {
	n := layers * experts
	s := state{
		layers: layers, experts: experts,
		group: make([]int32, layers), members: make([][]int32, layers),
		resident: make([]bool, n), pins: make([]int32, n),
		mark: make([]uint32, n), batch: 1, stamp: make([]uint64, n),
	}
	for l := range layers {
		g := 0
		if groupOf != nil {
			g = groupOf[l]
		}
		s.group[l] = int32(g)
		s.members[g] = append(s.members[g], int32(l))
	}
	return s
}

func (s *state) index(layer int, expert int32) int32 { return int32(layer*s.experts) + expert }

// split is index's inverse.
func (s *state) split(i int32) (layer int, expert int32) {
	return int(i) / s.experts, i % int32(s.experts)
}

// begin starts the batch made of ids of layer and stamps them in order.
func (s *state) begin(layer int, ids []int32) {
	s.nextBatch()
	s.turn = layer
	base := int32(layer * s.experts)
	for _, id := range ids {
		s.clock++
		s.mark[base+id] = s.batch
		s.stamp[base+id] = s.clock
	}
}

// nextBatch numbers a new batch. After 2^32 batches the marks start over.
func (s *state) nextBatch() {
	s.batch++
	if s.batch == 0 {
		clear(s.mark)
		s.batch = 1
	}
}

// Release ends the current batch.
func (s *state) Release() { s.nextBatch() }

// Resident reports whether the expert is in the cache.
func (s *state) Resident(layer int, expert int32) bool { return s.resident[s.index(layer, expert)] }

func (s *state) inBatch(i int32) bool { return s.mark[i] == s.batch }

// evictable reports whether Victim may return the resident i.
func (s *state) evictable(i int32) bool { return s.mark[i] != s.batch && s.pins[i] == 0 }
