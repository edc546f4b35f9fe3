package stream

import "slices"

// The split of the budget between slice sizes. Layers of one size share arenas,
// and each size begins with its share of the experts' bytes. That is not the
// best split when one size is used more evenly than another, so after a turn
// the routing that was seen is read once as a stack: how many more bytes each
// size would have served from a little more memory, and memory moves to where
// it serves most. The stack is LRU's, whatever the policy: it ranks the sizes,
// it does not predict their hits.

const (
	// splitAfter is how many lookups a split is decided on at least.
	splitAfter = 2048
	// splitSteps is how finely the budget is dealt.
	splitSteps = 64
)

// stack is the LRU stack of one class, and how deep its lookups were.
type stack struct {
	groups []int // of the class
	bytes  int64 // of a slot
	order  []int32
	depth  []int64 // lookups found at each depth
	seen   int
}

// splitter watches the lookups of a cache with several slice sizes; nil of one
// with a single size.
type splitter struct {
	stacks []stack
	of     []int // by layer
}

func newSplitter(g *geometry, cfg *Config) *splitter {
	sp := &splitter{of: make([]int, cfg.Layers)}
	for i := range g.groups {
		c := slices.IndexFunc(sp.stacks, func(s stack) bool { return g.groups[s.groups[0]].stride == g.groups[i].stride })
		if c < 0 {
			c = len(sp.stacks)
			sp.stacks = append(sp.stacks, stack{bytes: g.groups[i].slotBytes})
		}
		sp.stacks[c].groups = append(sp.stacks[c].groups, i)
		for _, l := range g.groups[i].layers {
			sp.of[l] = c
		}
	}
	if len(sp.stacks) < 2 {
		return nil
	}
	return sp
}

// touch moves a layer's experts to the top of their class's stack.
func (sp *splitter) touch(layer, experts int, ids []int32) {
	if sp == nil {
		return
	}
	s := &sp.stacks[sp.of[layer]]
	for _, e := range ids {
		key := int32(layer*experts) + e
		at := slices.Index(s.order, key)
		s.seen++
		if at < 0 {
			s.order = append(s.order, 0)
			s.depth = append(s.depth, 0)
			at = len(s.order) - 1
		} else {
			s.depth[at]++
		}
		copy(s.order[1:at+1], s.order[:at])
		s.order[0] = key
	}
}

// served is how many bytes a class would have served with slots from lo to hi.
func (s *stack) served(lo, hi int) int64 {
	var n int64
	for _, c := range s.depth[min(lo, len(s.depth)):min(hi, len(s.depth))] {
		n += c
	}
	return n * s.bytes
}

// deal divides a budget: step by step to the class whose next slots would have
// served most per byte, however far ahead that gain lies: a working set that
// is read round and round serves nothing until it fits.
func (sp *splitter) deal(budget int64, floor, most []int) []int {
	slots := slices.Clone(floor)
	left := budget
	for i := range sp.stacks {
		left -= int64(slots[i]) * sp.stacks[i].bytes
	}
	step := max(budget/splitSteps, 1)
	for left > 0 {
		best, bestGain, bestSlots := -1, -1.0, 0
		for i := range sp.stacks {
			s := &sp.stacks[i]
			room := min(most[i]-slots[i], int(left/s.bytes))
			for n := max(int(step/s.bytes), 1); room > 0; n *= 2 {
				n = min(n, room)
				gain := float64(s.served(slots[i], slots[i]+n)) / float64(int64(n)*s.bytes)
				if gain > bestGain {
					best, bestGain, bestSlots = i, gain, n
				}
				if n == room {
					break
				}
			}
		}
		if best < 0 {
			return slots
		}
		slots[best] += bestSlots
		left -= int64(bestSlots) * sp.stacks[best].bytes
	}
	return slots
}

// Rebalance moves memory between slice sizes after a turn, when enough lookups
// were seen. No graph may be running.
func (s *Stream) Rebalance() {
	sp := s.split
	if sp == nil {
		return
	}
	seen := 0
	for i := range sp.stacks {
		seen += sp.stacks[i].seen
	}
	if seen < splitAfter {
		return
	}
	floor, most := make([]int, len(sp.stacks)), make([]int, len(sp.stacks))
	for i, st := range sp.stacks {
		for _, g := range st.groups {
			floor[i] += min(s.cfg.Used, s.arenas[g].g.most)
			most[i] += s.arenas[g].g.most
		}
	}
	s.applySplit(sp.deal(s.stats.CacheBudgetBytes, floor, most))
	for i := range sp.stacks {
		st := &sp.stacks[i]
		st.seen = 0
		for d := range st.depth {
			st.depth[d] /= 2 // old turns fade
		}
	}
	s.stats.Rebalances++
}

// applySplit gives each class's groups an even part of its slots: first what
// shrinks, then what grows, so that the budget is never exceeded.
func (s *Stream) applySplit(slots []int) {
	want := make([]int, len(s.arenas))
	for i, st := range s.split.stacks {
		for k, g := range st.groups {
			n := slots[i] / len(st.groups)
			if k < slots[i]%len(st.groups) {
				n++
			}
			want[g] = min(max(n, min(s.cfg.Used, s.arenas[g].g.most)), s.arenas[g].g.most)
		}
	}
	for g, a := range s.arenas {
		if want[g] < a.limit {
			a.limit = want[g]
			s.shrink(g, a.limit)
		}
	}
	for g, a := range s.arenas {
		if want[g] > a.limit {
			a.limit = want[g]
			a.grow(a.limit)
		}
	}
	s.settleBudget()
	if s.narrow {
		s.bindNarrow()
	}
}
