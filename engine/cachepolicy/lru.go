package cachepolicy

// lru is least recently used over all layers of a group: one circular list a
// group, oldest first. Within a batch the order is that of the ids.
type lru struct {
	state
	next, prev []int32 // by entry; entry layers*experts+g is the head of group g
}

func newLRU(base state) *lru {
	n := base.layers * base.experts
	p := &lru{state: base, next: make([]int32, n+base.layers), prev: make([]int32, n+base.layers)}
	for g := range base.layers {
		h := int32(n + g)
		p.next[h], p.prev[h] = h, h
	}
	return p
}

func (p *lru) Name() string { return LRU }

func (p *lru) head(layer int) int32 { return int32(p.layers*p.experts) + p.group[layer] }

func (p *lru) Touch(layer int, ids, _ []int32, _ int, _ bool) {
	p.begin(layer, ids)
	head := p.head(layer)
	for _, id := range ids {
		if i := p.index(layer, id); p.resident[i] {
			p.unlink(i)
			p.linkBefore(head, i)
		}
	}
}

// Insert puts the expert where its last use belongs: a batch's misses go
// between its hits. Only entries of the current batch are stepped over.
func (p *lru) Insert(layer int, expert int32) {
	i := p.index(layer, expert)
	if p.resident[i] {
		return
	}
	p.resident[i] = true
	head := p.head(layer)
	at := head
	for p.prev[at] != head && p.stamp[p.prev[at]] > p.stamp[i] {
		at = p.prev[at]
	}
	p.linkBefore(at, i)
}

func (p *lru) Remove(layer int, expert int32) {
	if i := p.index(layer, expert); p.resident[i] {
		p.resident[i] = false
		p.unlink(i)
	}
}

func (p *lru) Victim(layer int) (victimLayer int, expert int32, ok bool) {
	head := p.head(layer)
	for i := p.next[head]; i != head; i = p.next[i] {
		if p.evictable(i) {
			victimLayer, expert = p.split(i)
			return victimLayer, expert, true
		}
	}
	return 0, 0, false
}

func (p *lru) Yield(layer int, incoming int32) (expert int32, ok bool) {
	head, in := p.head(layer), p.index(layer, incoming)
	for i := p.next[head]; i != head && p.stamp[i] < p.stamp[in]; i = p.next[i] {
		if p.inBatch(i) && p.pins[i] == 0 {
			_, expert = p.split(i)
			return expert, true
		}
	}
	return 0, false
}

func (p *lru) Pin(layer int, expert int32)   { p.pins[p.index(layer, expert)]++ }
func (p *lru) Unpin(layer int, expert int32) { p.pins[p.index(layer, expert)]-- }

func (p *lru) unlink(i int32) {
	p.next[p.prev[i]], p.prev[p.next[i]] = p.next[i], p.prev[i]
}

func (p *lru) linkBefore(at, i int32) {
	p.next[i], p.prev[i] = at, p.prev[at]
	p.next[p.prev[at]] = i
	p.prev[at] = i
}
