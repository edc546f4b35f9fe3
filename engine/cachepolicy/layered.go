package cachepolicy

// layered replaces within a layer's fair share of its group: a miss evicts
// from its own layer, by last use or by number of uses, once the layer holds
// its share. A layer whose whole share is in use by the batch takes from the
// layer that holds most, so a cache below one token cycle still keeps the best
// of every layer.
type layered struct {
	ranked
	name      string
	frequency bool  // score is the number of uses; else 0, and last use decides
	filled    []int // group -> residents
}

func newLayered(base state, name string, frequency bool) *layered {
	return &layered{ranked: newRanked(base), name: name, frequency: frequency, filled: make([]int, base.layers)}
}

func (p *layered) Name() string { return p.name }

func (p *layered) Touch(layer int, ids, _ []int32, _ int, _ bool) {
	p.begin(layer, ids)
	if p.frequency { // a batch is one use: a prompt would outweigh decode for long
		for _, id := range ids {
			p.score[p.index(layer, id)]++
		}
	}
}

func (p *layered) Insert(layer int, expert int32) {
	if p.insert(layer, expert) {
		p.filled[p.group[layer]]++
	}
}

func (p *layered) Remove(layer int, expert int32) {
	if p.remove(layer, expert) {
		p.filled[p.group[layer]]--
	}
}

func (p *layered) Victim(layer int) (victimLayer int, expert int32, ok bool) {
	g := p.group[layer]
	best := int32(-1)
	if len(p.held[layer])*len(p.members[g]) >= p.filled[g] {
		best = p.first(layer)
	}
	if best < 0 {
		best = p.fromRichest(layer)
	}
	if best < 0 {
		return 0, 0, false
	}
	victimLayer, expert = p.split(best)
	return victimLayer, expert, true
}

// fromRichest returns a victim of the group's layer that holds most; of equals
// the one whose turn is furthest away.
func (p *layered) fromRichest(layer int) int32 {
	best, most, furthest := int32(-1), 0, 0
	for _, m := range p.members[p.group[layer]] {
		n := len(p.held[m])
		away := turnsUntil(int(m), layer, p.layers)
		if n < most || (n == most && away <= furthest) {
			continue
		}
		if i := p.first(int(m)); i >= 0 {
			best, most, furthest = i, n, away
		}
	}
	return best
}

// turnsUntil is the number of layers between layer, whose turn it is, and the
// next turn of m.
func turnsUntil(m, layer, layers int) int {
	d := m - layer - 1
	if d < 0 {
		d += layers
	}
	return d
}
