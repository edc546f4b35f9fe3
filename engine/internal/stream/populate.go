package stream

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	populateStep = 16 << 20
	populateRoom = 32 << 20 // bytes left to others
)

// populator commits the pages of open slots before reads need them: a page that
// a read is the first to touch is found and cleared while compute waits for it.
type populator struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Populate commits the cache's memory in the background, slot 0 first, as long
// as room says that there are bytes to be had for it.
func (s *Stream) Populate(room func() int64) {
	s.populator.stop()
	ctx, cancel := context.WithCancel(context.Background())
	p := &populator{cancel: cancel}
	s.populator, s.room = p, room
	spans := openSlots(s.arenas)
	p.done.Go(func() {
		for _, span := range spans {
			if !commit(ctx, span, room) {
				return
			}
		}
	})
}

// commit commits a run of slots, and reports whether to go on.
func commit(ctx context.Context, span []byte, room func() int64) bool {
	for len(span) > 0 {
		n := min(len(span), populateStep)
		if ctx.Err() != nil || room() < populateRoom+int64(n) {
			return false
		}
		// An old kernel cannot; the pages are then committed as they are touched.
		if unix.Madvise(span[:n], unix.MADV_POPULATE_WRITE) != nil {
			return false
		}
		span = span[n:]
	}
	return true
}

// stop ends it and waits for the step under way. It may be called again.
func (p *populator) stop() {
	if p == nil {
		return
	}
	p.cancel()
	p.done.Wait()
}

// openSlots are the memory of the slots that the budget opens, in whole pages.
func openSlots(arenas []*arena) [][]byte {
	var out [][]byte
	for _, a := range arenas {
		for _, p := range a.g.proj {
			from := roundUp(a.off[p], 4096)
			to := (a.off[p] + int64(a.open)*a.g.stride[p]) / 4096 * 4096
			if to > from {
				out = append(out, a.mem[from:to])
			}
		}
	}
	return out
}
