package probes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// request says what one sample reads.
type request struct {
	deck  *deck
	lanes int
	bytes int64         // read at most this much
	box   time.Duration // stop starting reads after this
}

// sample is one timed burst of reads.
type sample struct {
	bytes   int64
	seconds float64
	fetched int64 // bytes the storage layer saw; -1 unaccounted
	when    float64
}

func (s sample) rate() float64 { return float64(s.bytes) / s.seconds }

// errCached says that the bytes did not come from the drive.
var errCached = errors.New("the page cache served the reads, not the drive")

// sampler reads bursts from a drive with a set of open lanes.
type sampler struct {
	drive  drive
	direct bool
	now    func() time.Time
	start  time.Time
	lanes  []lane
	most   int64 // largest request
}

// need opens lanes up to n.
func (s *sampler) need(n int) error {
	for len(s.lanes) < n {
		l, err := s.drive.lane(s.direct, s.most)
		if err != nil {
			return fmt.Errorf("lane %d: %w", len(s.lanes)+1, err)
		}
		s.lanes = append(s.lanes, l)
	}
	return nil
}

func (s *sampler) close() {
	for _, l := range s.lanes {
		l.close()
	}
	s.lanes = nil
}

// burst shares one sample's work among its lanes.
type burst struct {
	mu    sync.Mutex
	ask   request
	done  int64
	until time.Time
	err   error
}

// take hands out the next window until the sample is large enough, its time is
// up, or a lane failed.
func (b *burst) take(ctx context.Context, now time.Time) (int64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || ctx.Err() != nil || b.done >= b.ask.bytes || (b.done > 0 && now.After(b.until)) {
		return 0, false
	}
	off, ok := b.ask.deck.deal()
	if ok {
		b.done += b.ask.deck.size
	}
	return off, ok
}

func (b *burst) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
}

// run takes one sample. The rate is of the bytes asked for, not of the
// alignment around them. Reads that storage did not see are an error.
func (s *sampler) run(ctx context.Context, ask request) (sample, error) {
	if err := s.need(ask.lanes); err != nil {
		return sample{}, err
	}
	before, accounted := s.drive.served()
	start := s.now()
	b := &burst{ask: ask, until: start.Add(ask.box)}
	var wg sync.WaitGroup
	for _, l := range s.lanes[:ask.lanes] {
		wg.Go(func() {
			for {
				off, ok := b.take(ctx, s.now())
				if !ok {
					return
				}
				if _, err := l.read(off, ask.deck.size); err != nil {
					b.fail(fmt.Errorf("read at %d: %w", off, err))
					return
				}
			}
		})
	}
	wg.Wait()
	out := sample{bytes: b.done, seconds: s.now().Sub(start).Seconds(), fetched: -1, when: s.now().Sub(s.start).Seconds()}
	if err := errors.Join(b.err, ctx.Err()); err != nil {
		return sample{}, err
	}
	if out.bytes == 0 || out.seconds <= 0 {
		return sample{}, errors.New("nothing could be read in the time given")
	}
	if after, ok := s.drive.served(); ok && accounted {
		out.fetched = after - before
		if out.fetched < out.bytes/2 && !s.drive.place().remote {
			return out, errCached
		}
	}
	return out, nil
}
