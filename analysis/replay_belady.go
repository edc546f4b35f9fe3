package analysis

import (
	"container/heap"
	"math"
)

// belady evicts the resident whose next use is furthest away. It reads the
// future from the routing itself.
type belady struct {
	experts  int
	batch    int // index of the current batch
	resident []bool
	inBatch  []int   // index of the last batch the expert was in
	next     []int32 // the expert's next batch after that one
	future   [][]int32
	queue    nextUses
	aside    []nextUse
}

// nextUse is an entry of the queue; it is stale when the expert has been used
// or evicted since.
type nextUse struct {
	entry int32
	at    int32 // index of the next batch that uses it; math.MaxInt32 for none
}

type nextUses []nextUse

func (q nextUses) Len() int           { return len(q) }
func (q nextUses) Less(i, j int) bool { return q[i].at > q[j].at }
func (q nextUses) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *nextUses) Push(x any)        { *q = append(*q, x.(nextUse)) }
func (q *nextUses) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

func newBelady(r *Routing) *belady {
	n := len(r.ExpertBytes) * r.Experts
	b := &belady{
		experts: r.Experts, resident: make([]bool, n), inBatch: make([]int, n),
		next: make([]int32, n), future: make([][]int32, len(r.Batches)),
	}
	for i := range b.next {
		b.next[i], b.inBatch[i] = math.MaxInt32, -1
	}
	for i := len(r.Batches) - 1; i >= 0; i-- {
		batch := &r.Batches[i]
		b.future[i] = make([]int32, len(batch.IDs))
		for k, id := range batch.IDs {
			e := batch.Layer*r.Experts + int(id)
			b.future[i][k] = b.next[e]
			b.next[e] = int32(i)
		}
	}
	return b
}

func (b *belady) entry(layer int, expert int32) int32 { return int32(layer*b.experts) + expert }

func (b *belady) touch(batch *RoutedBatch, n int) {
	b.batch = n
	for k, id := range batch.IDs {
		e := b.entry(batch.Layer, id)
		b.inBatch[e], b.next[e] = n, b.future[n][k]
		if b.resident[e] {
			heap.Push(&b.queue, nextUse{e, b.next[e]})
		}
	}
}

// Resident, Insert, Remove and Victim are as in cachepolicy.Policy.
func (b *belady) Resident(layer int, expert int32) bool { return b.resident[b.entry(layer, expert)] }

func (b *belady) Insert(layer int, expert int32) {
	e := b.entry(layer, expert)
	b.resident[e] = true
	heap.Push(&b.queue, nextUse{e, b.next[e]})
}

func (b *belady) Remove(layer int, expert int32) { b.resident[b.entry(layer, expert)] = false }

func (b *belady) Victim(int) (victimLayer int, expert int32, ok bool) {
	b.aside = b.aside[:0]
	found := int32(-1)
	for found < 0 && len(b.queue) > 0 {
		u := heap.Pop(&b.queue).(nextUse)
		switch {
		case !b.resident[u.entry] || b.next[u.entry] != u.at: // stale
		case b.inBatch[u.entry] == b.batch:
			b.aside = append(b.aside, u)
		default:
			found = u.entry
		}
	}
	for _, u := range b.aside {
		heap.Push(&b.queue, u)
	}
	if found < 0 {
		return 0, 0, false
	}
	return int(found) / b.experts, found % int32(b.experts), true
}
