package probes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/planner"
)

const (
	denseRequest = 1 << 20   // request size where a model has no expert slices
	minFile      = 32 << 20  // less than this is over before a clock can time it
	decidingMost = 512 << 20 // bytes of one sample at the deciding point
	repeats      = 3
	tolerance    = 0.05 // lane counts this close are one
	driftNotice  = 0.10
	spreadNotice = 0.10
	mostRequest  = 16 << 20
	mappingPairs = 5
	mappingLoss  = 1.1 // how much slower every mapped sample must be
)

// laneCounts are the lane counts the curve is read at.
var laneCounts = []int{1, 2, 4, 8}

// storageTimes are the time boxes of the probe, per sample. Their sum, with
// repeats, is what the probe costs on a drive too slow to finish early.
type storageTimes struct {
	screen, decide, size, refault, buffered, mapping time.Duration
}

func defaultTimes() storageTimes {
	return storageTimes{
		screen: 40 * time.Millisecond, decide: 380 * time.Millisecond, size: 30 * time.Millisecond,
		refault: 30 * time.Millisecond, buffered: 30 * time.Millisecond, mapping: 25 * time.Millisecond,
	}
}

// storageProbe is one probe of one file.
type storageProbe struct {
	drive  drive
	target target
	now    func() time.Time
	page   int64 // of virtual memory, bytes
	times  storageTimes
	budget int64 // bytes of buffers it may hold

	start time.Time
	facts planner.StorageFacts
	notes []string
}

const owedStorage = "`bmoe probe -m MODEL` on a file on a drive, with its page cache dropped"

// Storage measures the drive under the model's experts. It reads about 2 GB
// from all over the file, past the page cache, in about two seconds, and less
// on a slower drive; it writes nothing and holds at most budget bytes.
func (h *Host) Storage(ctx context.Context, t target, budget int64) planner.StorageFacts {
	d, err := openDrive(t.path)
	if err != nil {
		return unknownStorage(err.Error(), owedStorage)
	}
	defer d.close()
	p := &storageProbe{drive: d, target: t, now: h.Now, page: h.PageSize, times: defaultTimes(), budget: budget}
	return p.run(ctx)
}

// unknownStorage is the facts of a file that was not, or could not be, read.
func unknownStorage(why, owed string) planner.StorageFacts {
	rate := planner.UnknownFact[float64](why, owed)
	flag := planner.UnknownFact[bool](why, owed)
	bytes := planner.UnknownFact[int64](why, owed)
	return planner.StorageFacts{
		Curve: planner.UnknownFact[[]planner.RatePoint](why, owed), Refault: rate, ODirect: flag, Buffered: rate,
		MapSerialises: flag, RateMapped: rate, RateUnmapped: rate, Align: bytes, Drift: rate,
		FileSystem: planner.UnknownFact[string](why, owed), DecidingSample: bytes,
	}
}

// refusal says why a file's rate would not be its drive's, if so.
func (p *storageProbe) refusal() error {
	where := p.drive.place()
	length, stored := p.drive.size()
	var weights int64
	for _, e := range p.target.extents {
		weights += e.n
	}
	switch {
	case where.memory:
		return fmt.Errorf("the file is on %s, which is memory: its rate is not storage's", where.name)
	case weights < minFile:
		return fmt.Errorf("the file holds %s of weights: smaller than one sample (%s), so no rate can be read from it", size(weights), size(minFile))
	case stored < length-length/20 && !where.remote:
		return fmt.Errorf("the file is sparse (%s long, %s stored): reading holes is not reading the drive", size(length), size(stored))
	case p.budget < 4*p.target.slice:
		return fmt.Errorf("only %s may be held here, too little for the probe's own buffers", size(p.budget))
	}
	return nil
}

func (p *storageProbe) run(ctx context.Context) planner.StorageFacts {
	p.start = p.now()
	if err := p.refusal(); err != nil {
		p.facts = unknownStorage(err.Error(), owedStorage)
		p.describe()
		return p.stamped()
	}
	p.facts = unknownStorage("the probe ended before this was read", owedStorage)
	p.describe()
	direct := p.verifyDirect()
	if err := p.measure(ctx, direct); err != nil {
		p.facts.Curve = planner.UnknownFact[[]planner.RatePoint](err.Error(), owedStorage)
	}
	return p.stamped()
}

// describe fills in what is known without reading.
func (p *storageProbe) describe() {
	where := p.drive.place()
	p.facts.FileSystem = planner.MeasuredFact(where.name, 0, "statfs of "+"the file that holds the experts")
	if n, stated := p.drive.align(); stated {
		p.facts.Align = planner.MeasuredFact(n, 0, "statx: direct reads start and end on multiples of it")
	} else {
		p.facts.Align = planner.MeasuredFact[int64](0, 0, fmt.Sprintf("the kernel does not say; %d is used", n))
	}
}

// measure runs the stages in the order of what depends on them.
func (p *storageProbe) measure(ctx context.Context, direct bool) error {
	sizes := p.sizes()
	s := &sampler{drive: p.drive, direct: direct, now: p.now, start: p.start, most: sizes[len(sizes)-1]}
	defer s.close()
	if !direct {
		if err := p.uncached(s.most); err != nil {
			return err
		}
	}
	curve := newCurve()
	main := newDeck(p.target.extents, p.target.slice, 1)
	if err := p.screen(ctx, s, main, curve); err != nil {
		return err
	}
	best := curve.bestLanes(p.target.slice)
	if err := p.decide(ctx, s, main, best, curve); err != nil {
		return err
	}
	for i, n := range sizes {
		if n != p.target.slice {
			p.repeat(ctx, s, newDeck(p.target.extents, n, uint64(i+2)), best, p.times.size, curve)
		}
	}
	p.publish(curve, direct, best, main)
	s.close() // its buffers make room for the next stages' own
	p.refault(ctx, direct)
	p.buffered(ctx, direct, best)
	p.mapping(ctx, s, main, best)
	return nil
}

// sizes are the request sizes around the slice, ascending, that the buffers
// leave room for.
func (p *storageProbe) sizes() []int64 {
	slice := p.target.slice
	out := []int64{slice}
	if small := slice / 4 / 4096 * 4096; small >= p.page {
		out = []int64{small, slice}
	}
	big := slice * 4
	for big > slice && (big > mostRequest || big*int64(len(laneCounts)*2) > p.budget) {
		big /= 2
	}
	if big > slice {
		out = append(out, big)
	}
	return out
}

// uncached refuses a buffered probe of a file that the page cache holds.
func (p *storageProbe) uncached(int64) error {
	var held, total int64
	for _, e := range p.target.extents {
		n, ok := p.drive.cached(e.off, e.n)
		if !ok {
			p.notes = append(p.notes, "the kernel does not tell what the page cache holds")
			return nil
		}
		held, total = held+n, total+e.n
	}
	if float64(held) > 0.1*float64(total) {
		return fmt.Errorf("direct reads are not to be had and the page cache holds %.0f %% of the file: %w", 100*float64(held)/float64(total), errCached)
	}
	return nil
}

// laneError keeps why a lane count has no point.
func (p *storageProbe) laneError(lanes int, err error) {
	p.notes = append(p.notes, fmt.Sprintf("%d lanes: %v", lanes, err))
}

// ended reports an error that ends the probe rather than one point of it.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
