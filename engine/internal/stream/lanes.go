package stream

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/engine/counters"
)

// request asks for one expert's projection.
type request struct {
	tensor *Tensor
	expert int32
	dst    []byte // a slot; the slice lands phase bytes into it
	also   []byte // a second slot that gets a copy, or nil
	from   []byte // a resident slot to copy from instead of reading, or nil
	phase  int64
	other  int64 // the phase in also or from
	batch  *batch
	guess  *guessedRead // what asked for it before its layer was routed, or nil
	ticket int32        // that guess's
}

// batch counts the requests of one projection of one layer that are not done.
type batch struct {
	left atomic.Int32
	open bool // something was asked for and has not been waited for
}

// lanes are the workers that read.
type lanes struct {
	src     Source
	queue   *queue
	sets    [2][numProj]batch // of the layer that computes, and of one read ahead
	now     int               // the set of the layer that computes
	failed  atomic.Pointer[ReadError]
	timeout time.Duration
	epoch   time.Time
	last    atomic.Int64 // when a read that was waited for ended, in ns from epoch
	hung    bool
	wg      sync.WaitGroup
	once    sync.Once
	perLane []laneCount
}

// laneCount is one lane's own counters, padded apart from its neighbours'.
type laneCount struct {
	reads, bytes, repacked, repackNS atomic.Int64
	_                                [32]byte
}

var errReadTimeout = errors.New("the read did not end in time")

// startLanes starts n lanes for batches of up to that many experts.
func startLanes(src Source, n, experts int, timeout time.Duration) *lanes {
	l := &lanes{src: src, queue: newQueue(2*numProj*(experts+guessSlots) + n), timeout: timeout, epoch: time.Now(), perLane: make([]laneCount, n)}
	for lane := range n {
		l.wg.Add(1)
		go l.work(lane)
	}
	return l
}

// stop ends the workers and reports whether all have ended. A lane that hangs in
// a read is left behind, and with it the memory it may still write to.
func (l *lanes) stop() (ended bool) {
	l.once.Do(func() {
		for range l.perLane {
			l.queue.put(request{})
		}
		l.queue.post()
	})
	if !l.hung {
		l.wg.Wait()
		return true
	}
	done := make(chan struct{})
	go func() { l.wg.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(l.timeout):
		return false
	}
}

func (l *lanes) work(lane int) {
	defer l.wg.Done()
	var aside bounce
	defer aside.free()
	for r := l.queue.take(); r.tensor != nil; r = l.queue.take() {
		if r.guess != nil && !r.guess.move(r.ticket, guessQueued, guessBegun) {
			continue
		}
		err := l.serve(lane, &r, &aside)
		if r.guess != nil && r.guess.end(r.ticket, err) {
			continue
		}
		if err != nil {
			l.failed.CompareAndSwap(nil, &ReadError{
				File: l.src.Name(r.tensor.Shard), Offset: r.tensor.Offset + int64(r.expert)*r.tensor.Slice,
				Layer: r.tensor.Layer, Expert: r.expert, Projection: projNames[r.tensor.Proj], Err: err,
			})
		}
		l.last.Store(time.Since(l.epoch).Nanoseconds())
		if r.guess == nil {
			l.queue.done()
		}
		if r.batch.left.Add(-1) == 0 {
			wake(&r.batch.left, 1)
		}
	}
}

// serve fills one slot.
func (l *lanes) serve(lane int, r *request, aside *bounce) error {
	slice := r.dst[r.phase : r.phase+r.tensor.Slice]
	if r.from != nil {
		copy(slice, r.from[r.other:])
		return nil
	}
	if l.failed.Load() != nil {
		return nil // the run is ending; do not read for it
	}
	if err := l.read(lane, r, slice, aside); err != nil {
		return err
	}
	c := &l.perLane[lane]
	c.reads.Add(1)
	c.bytes.Add(r.tensor.Slice)
	if r.also != nil {
		copy(r.also[r.other:], slice)
	}
	return nil
}

// read fetches one slice. Aligned reads contain the slice: where its phase is
// that of the slot they land in the slot, else aside.
func (l *lanes) read(lane int, r *request, slice []byte, aside *bounce) error {
	align := l.src.Align()
	off := r.tensor.Offset + int64(r.expert)*r.tensor.Slice
	start := off / align * align
	lead := off - start
	size := roundUp(lead+r.tensor.Slice, align)
	buf := r.dst
	inPlace := r.tensor.Repack == nil && r.tensor.Slice%align == 0 && lead == r.phase && size <= int64(len(r.dst))
	if !inPlace {
		var err error
		if buf, err = aside.get(size); err != nil {
			return err
		}
	}
	n, err := l.src.ReadAt(lane, r.tensor.Shard, buf[:size], start)
	if int64(n) < lead+r.tensor.Slice {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("%d of %d bytes: %w", max(int64(n)-lead, 0), r.tensor.Slice, err)
	}
	switch {
	case r.tensor.Repack != nil:
		began := time.Now()
		r.tensor.Repack(slice, buf[lead:lead+r.tensor.Slice])
		l.perLane[lane].repackNS.Add(time.Since(began).Nanoseconds())
		l.perLane[lane].repacked.Add(r.tensor.Slice)
	case !inPlace:
		copy(slice, buf[lead:])
	}
	return nil
}

// bounce is a lane's own aligned buffer.
type bounce struct{ mem []byte }

func (b *bounce) get(size int64) ([]byte, error) {
	if int64(len(b.mem)) < size {
		b.free()
		mem, err := reserve(roundUp(size, 4096))
		if err != nil {
			return nil, err
		}
		b.mem = mem
	}
	return b.mem[:size], nil
}

func (b *bounce) free() {
	if b.mem != nil {
		_ = unix.Munmap(b.mem)
		b.mem = nil
	}
}

// expect opens a batch of n requests for a projection. The requests follow.
func (l *lanes) expect(proj, n int) *batch {
	return l.expectIn(l.now, proj, n)
}

// ahead opens a batch of the layer that is read ahead.
func (l *lanes) ahead(proj, n int) *batch { return l.expectIn(1-l.now, proj, n) }

// current is a projection's batch of the layer that computes.
func (l *lanes) current(proj int) *batch { return &l.sets[l.now][proj] }

// lastRead is when a read that was waited for, or is, ended last.
func (l *lanes) lastRead() time.Time { return l.epoch.Add(time.Duration(l.last.Load())) }

// turn makes the set that was read ahead the current one.
func (l *lanes) turn() { l.now = 1 - l.now }

func (l *lanes) expectIn(set, proj, n int) *batch {
	b := &l.sets[set][proj]
	if n > 0 {
		b.left.Store(int32(n))
		b.open = true
	}
	return b
}

// pending reports whether the projection's batch has not been waited for.
func (l *lanes) pending(proj int) bool { return l.current(proj).open }

// any reports whether a batch of the current layer is so.
func (l *lanes) any(so func(*batch) bool) bool {
	for p := range l.sets[l.now] {
		if so(&l.sets[l.now][p]) {
			return true
		}
	}
	return false
}

// wait blocks until the projection's batch is done.
func (l *lanes) wait(proj int) error {
	b := l.current(proj)
	if b.open {
		if err := l.await(b); err != nil {
			return err
		}
		b.open = false
	}
	if e := l.failed.Load(); e != nil {
		return e
	}
	return nil
}

func (l *lanes) await(b *batch) error {
	if !l.until(&b.left, func(n int32) bool { return n == 0 }) {
		return fmt.Errorf("%s: %w (%v)", l.src.Name(0), errReadTimeout, l.timeout)
	}
	return nil
}

// until sleeps until what a lane wakes others for is so, and reports false if a
// read takes too long.
func (l *lanes) until(word *atomic.Int32, so func(int32) bool) bool {
	v := word.Load()
	if so(v) {
		return true
	}
	for end := time.Now().Add(l.timeout); !so(v); v = word.Load() {
		left := time.Until(end)
		if left <= 0 {
			l.hung = true
			return false
		}
		sleepOn(word, v, left)
	}
	return true
}

// settle waits for all reads under way, and forgets a failure and reports it:
// who gave up waiting has not heard of it.
func (l *lanes) settle() (failed bool) {
	for i := range l.sets {
		for p := range l.sets[i] {
			if b := &l.sets[i][p]; b.open && !l.hung && l.await(b) == nil {
				b.open = false
			}
		}
	}
	failed = l.failed.Load() != nil
	if !l.hung {
		l.failed.Store(nil)
	}
	return failed
}

// forget sets the lanes' counters to zero.
func (l *lanes) forget() {
	for i := range l.perLane {
		c := &l.perLane[i]
		for _, n := range []*atomic.Int64{&c.reads, &c.bytes, &c.repacked, &c.repackNS} {
			n.Store(0)
		}
	}
}

func (l *lanes) count(c *counters.Counters) {
	for i := range l.perLane {
		n := l.perLane[i].reads.Load()
		if n > 0 {
			c.Lanes++
		}
		c.Reads += n
		c.BytesRead += l.perLane[i].bytes.Load()
		c.RepackedBytes += l.perLane[i].repacked.Load()
		c.RepackS += float64(l.perLane[i].repackNS.Load()) / 1e9
	}
	if l.src.Direct() {
		c.DirectReads = c.Reads
	} else {
		c.BufferedReads = c.Reads
	}
}
