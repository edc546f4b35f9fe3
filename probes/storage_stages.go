package probes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/planner"
)

// screen reads the slice at every lane count, in interleaved rounds so that a
// change of the drive falls on all of them. A count that fails is left out and
// noted; it is an error when none is left.
func (p *storageProbe) screen(ctx context.Context, s *sampler, d *deck, c *curve) error {
	failed := map[int]bool{}
	var last error
	for round := range repeats {
		for i := range laneCounts {
			lanes := laneCounts[(i+round)%len(laneCounts)]
			if failed[lanes] || int64(lanes)*(d.size+8192) > p.budget {
				continue
			}
			got, err := s.run(ctx, request{deck: d, lanes: lanes, bytes: decidingMost, box: p.times.screen})
			if ended(err) {
				return err
			}
			if err != nil {
				failed[lanes], last = true, err
				c.drop(d.size, lanes)
				p.laneError(lanes, err)
				continue
			}
			c.add(d.size, lanes, got)
		}
	}
	if len(c.points) == 0 {
		return errors.Join(last, errors.New("no lane count could be read"))
	}
	return nil
}

// decide takes the long samples at the lane count that won, which replace the
// short ones.
func (p *storageProbe) decide(ctx context.Context, s *sampler, d *deck, lanes int, c *curve) error {
	var long []sample
	bytes := min(decidingMost, int64(len(d.windows))*d.size) // of a small file no part twice in one sample
	for range repeats {
		got, err := s.run(ctx, request{deck: d, lanes: lanes, bytes: bytes, box: p.times.decide})
		if err != nil {
			return fmt.Errorf("the deciding sample, %d lanes: %w", lanes, err)
		}
		long = append(long, got)
	}
	c.decide(d.size, lanes, long)
	return nil
}

// repeat takes a point's samples; a point that fails is noted and left out.
func (p *storageProbe) repeat(ctx context.Context, s *sampler, d *deck, lanes int, box time.Duration, c *curve) {
	for range repeats {
		got, err := s.run(ctx, request{deck: d, lanes: lanes, bytes: decidingMost, box: box})
		if err != nil {
			c.drop(d.size, lanes)
			p.notes = append(p.notes, fmt.Sprintf("requests of %s: %v", size(d.size), err))
			return
		}
		c.add(d.size, lanes, got)
	}
}

// refault prices a page that pressure dropped: reads of one page of virtual
// memory from all over the file, one at a time.
func (p *storageProbe) refault(ctx context.Context, direct bool) {
	unit := p.page
	if n, _ := p.drive.align(); direct {
		unit = max(unit, n)
	}
	s := &sampler{drive: p.drive, direct: direct, now: p.now, start: p.start, most: unit}
	defer s.close()
	var extents []extent
	for _, e := range p.target.extents {
		off := (e.off + unit - 1) / unit * unit
		extents = append(extents, extent{off, e.off + e.n - off})
	}
	rate, spread, err := p.medianRate(ctx, s, newDeck(extents, unit, 99), 1, p.times.refault)
	if err != nil {
		p.facts.Refault = planner.UnknownFact[float64](err.Error(), owedStorage)
		return
	}
	p.facts.Refault = planner.MeasuredFact(rate, spread, fmt.Sprintf("scattered reads of one %s page, one at a time", size(unit)))
}

// buffered reads parts of the file that the page cache does not hold through
// it, and drops them again.
func (p *storageProbe) buffered(ctx context.Context, direct bool, lanes int) {
	if !direct {
		p.facts.Buffered = planner.DerivedFact(p.decidingRate(lanes), "direct reads are not to be had, so the rate is the buffered one")
		return
	}
	all := newDeck(p.target.extents, p.target.slice, 7)
	cold := &deck{size: all.size}
	for _, off := range all.windows {
		held, ok := p.drive.cached(off, all.size)
		if !ok {
			p.facts.Buffered = planner.UnknownFact[float64]("the kernel does not tell this account what the page cache holds", "the probe run by the file's owner")
			return
		}
		if held == 0 {
			cold.windows = append(cold.windows, off)
		}
		if int64(len(cold.windows))*cold.size > 256<<20 {
			break
		}
	}
	if int64(len(cold.windows))*cold.size < minFile {
		p.facts.Buffered = planner.UnknownFact[float64]("the page cache holds nearly all of the file", owedStorage)
		return
	}
	s := &sampler{drive: p.drive, now: p.now, start: p.start, most: all.size}
	defer s.close()
	rate, spread, err := p.medianRate(ctx, s, cold, lanes, p.times.buffered)
	for _, off := range cold.windows[:cold.dealt()] {
		p.drive.forget(off, cold.size)
	}
	if err != nil {
		p.facts.Buffered = planner.UnknownFact[float64](err.Error(), owedStorage)
		return
	}
	p.facts.Buffered = planner.MeasuredFact(rate, spread, fmt.Sprintf("reads of %s through the page cache, no read-ahead, %d lanes", size(all.size), lanes))
}

// medianRate is the median of three samples and their spread.
func (p *storageProbe) medianRate(ctx context.Context, s *sampler, d *deck, lanes int, box time.Duration) (rate, spread float64, err error) {
	var rates []float64
	for range repeats {
		got, err := s.run(ctx, request{deck: d, lanes: lanes, bytes: min(decidingMost, max(d.left(), d.size)), box: box})
		if err != nil {
			return 0, 0, err
		}
		rates = append(rates, got.rate())
	}
	rate, spread = medianSpread(rates)
	return rate, spread, nil
}

// mapping compares reads while the file is mapped with reads after it is not,
// in alternating order. It can show that a mapping gets in the way; that it
// does not, it cannot: the engine's own accesses are not these.
func (p *storageProbe) mapping(ctx context.Context, s *sampler, d *deck, lanes int) {
	ask := request{deck: d, lanes: lanes, bytes: decidingMost, box: p.times.mapping}
	var with, without []float64
	for pair := range mappingPairs {
		for half := range 2 {
			mapped := half == pair%2
			rate, err := p.mappedRate(ctx, s, ask, mapped)
			if err != nil {
				p.noMapping(err)
				return
			}
			if mapped {
				with = append(with, rate)
			} else {
				without = append(without, rate)
			}
		}
	}
	rw, sw := medianSpread(with)
	ro, so := medianSpread(without)
	p.facts.RateMapped = planner.MeasuredFact(rw, sw, "direct reads with the whole file mapped")
	p.facts.RateUnmapped = planner.MeasuredFact(ro, so, "the same reads with no mapping, in alternation")
	found := fmt.Sprintf("%s/s mapped, %s/s not, over %d alternating pairs", size(int64(rw)), size(int64(ro)), mappingPairs)
	if slowest(without) > mappingLoss*fastest(with) {
		p.facts.MapSerialises = planner.MeasuredFact(true, 0, found+": every mapped sample is slower than every other")
		return
	}
	p.facts.MapSerialises = planner.UnknownFact[bool](found+": no clear difference, which proves nothing", "`bmoe sweep --lever release-mmap`")
}

// mappedRate takes one sample, with the file mapped or not.
func (p *storageProbe) mappedRate(ctx context.Context, s *sampler, ask request, mapped bool) (float64, error) {
	if mapped {
		release, err := p.drive.mapped()
		if err != nil {
			return 0, err
		}
		defer release()
	}
	got, err := s.run(ctx, ask)
	if err != nil {
		return 0, err
	}
	return got.rate(), nil
}

func (p *storageProbe) noMapping(err error) {
	p.facts.MapSerialises = planner.UnknownFact[bool](err.Error(), "`bmoe sweep --lever release-mmap`")
}
