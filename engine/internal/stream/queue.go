package stream

import "sync/atomic"

// queue hands requests to the lanes, the oldest to whichever lane wakes first.
// Lanes sleep on a futex and not in a channel's receive: a channel picks the
// receiver first and leaves it to Go's scheduler to find a thread for it, and
// the first reads of a layer began after all the others (docs/streaming.md).
//
// One goroutine puts. The ring never fills: it has room for every request that
// can be under way.
type queue struct {
	ring    []request
	tail    uint32        // next to put
	posted  uint32        // tail at the last post
	head    atomic.Uint32 // next to take
	ready   atomic.Int32  // requests that may be taken
	pending atomic.Int32  // posted ones that are not done
	held    atomic.Int32  // put behind them, to be taken when all those are done
}

// newQueue makes a queue for up to n requests under way.
func newQueue(n int) *queue {
	size := 1
	for size < n {
		size *= 2 // positions wrap around at 2^32
	}
	return &queue{ring: make([]request, size)}
}

func (q *queue) at(i uint32) *request { return &q.ring[i%uint32(len(q.ring))] }

// put adds a request. Lanes see it after the next post.
func (q *queue) put(r request) {
	*q.at(q.tail) = r
	q.tail++
}

// since is how many requests were put since it was called last.
func (q *queue) since() int32 {
	n := int32(q.tail - q.posted)
	q.posted = q.tail
	return n
}

// post wakes lanes for what was put, and for what is still held before it.
func (q *queue) post() {
	if n := q.since(); n > 0 {
		q.pending.Add(n)
		q.release(n + q.held.Swap(0))
	}
}

// hold leaves what was put until all that was posted is done: a drive that
// answers in batches would answer that later for it.
func (q *queue) hold() {
	q.held.Add(q.since())
	if q.pending.Load() == 0 {
		q.release(q.held.Swap(0))
	}
}

// done says that a posted request is.
func (q *queue) done() {
	if q.pending.Add(-1) == 0 {
		q.release(q.held.Swap(0))
	}
}

func (q *queue) release(n int32) {
	if n > 0 {
		q.ready.Add(n)
		wake(&q.ready, n)
	}
}

// take returns the oldest request, and sleeps while there is none.
func (q *queue) take() request {
	for {
		n := q.ready.Load()
		switch {
		case n == 0:
			sleepOn(&q.ready, 0, 0)
		case q.ready.CompareAndSwap(n, n-1):
			return *q.at(q.head.Add(1) - 1)
		}
	}
}
