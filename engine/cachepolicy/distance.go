package cachepolicy

// Distances measures byte stack distances: for every lookup the bytes of the
// expert plus those of everything used since its last use. LRU under one byte
// budget hits exactly when the budget is at least the distance, so one pass
// gives its hits at every budget. It is not safe for concurrent use.
type Distances struct {
	experts int
	bytes   []int64 // of one expert, by layer
	last    []int32 // entry -> 1 + place in time of its last use; 0 never
	batch   []uint32
	tree    []int64 // Fenwick tree over places; a used place holds its entry's bytes
	owner   []int32 // place -> entry, -1 once the entry was used again
	now     int32   // next free place
	number  uint32  // of the current batch
}

// Never is the distance of a first use: no budget makes it a hit.
const Never = int64(1<<63 - 1)

// NewDistances returns Distances for layers of experts experts; expertBytes[l]
// is the size of one expert of layer l.
func NewDistances(experts int, expertBytes []int64) *Distances {
	n := experts * len(expertBytes)
	d := &Distances{
		experts: experts, bytes: expertBytes,
		last: make([]int32, n), batch: make([]uint32, n),
		tree: make([]int64, 2*n+1), owner: make([]int32, 2*n), number: 1,
	}
	return d
}

// Touch measures one batch: distance[i] becomes the distance of ids[i] as the
// batch began. ids are distinct and in the order of their last use. An expert
// of the batch just before is at distance 0: nothing could evict it between.
func (d *Distances) Touch(layer int, ids []int32, distance []int64) {
	d.number++
	base, bytes := int32(layer*d.experts), d.bytes[layer]
	for i, id := range ids {
		e := base + id
		switch at := d.last[e]; {
		case at == 0:
			distance[i] = Never
		case d.batch[e] == d.number-1:
			distance[i] = 0
		default:
			distance[i] = d.sum(d.now) - d.sum(at-1)
		}
	}
	for _, id := range ids {
		d.use(base+id, bytes)
	}
}

func (d *Distances) use(e int32, bytes int64) {
	d.batch[e] = d.number
	if at := d.last[e]; at != 0 {
		d.add(at, -bytes)
		d.owner[at-1] = -1
	}
	if int(d.now) == len(d.owner) {
		d.last[e] = 0
		d.compact()
	}
	d.owner[d.now] = e
	d.now++
	d.last[e] = d.now
	d.add(d.now, bytes)
}

// compact moves the live places to the front, in order. At most half of all
// places are live, so it is paid for by the uses since the last time.
func (d *Distances) compact() {
	n := int32(0)
	clear(d.tree)
	for _, e := range d.owner {
		if e >= 0 {
			d.owner[n] = e
			n++
			d.last[e] = n
			d.tree[n] = d.bytes[int(e)/d.experts]
		}
	}
	d.now = n
	for i := int32(1); i < int32(len(d.tree)); i++ {
		if up := i + i&-i; up < int32(len(d.tree)) {
			d.tree[up] += d.tree[i]
		}
	}
}

func (d *Distances) add(at int32, bytes int64) {
	for ; at < int32(len(d.tree)); at += at & -at {
		d.tree[at] += bytes
	}
}

func (d *Distances) sum(at int32) (bytes int64) {
	for ; at > 0; at -= at & -at {
		bytes += d.tree[at]
	}
	return bytes
}
