package probes

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/bmoe/bmoe/planner"
)

// publish turns the curve into facts, with everything a reader should know
// before believing it.
func (p *storageProbe) publish(c *curve, direct bool, lanes int, d *deck) {
	k := point{p.target.slice, lanes}
	_, spread := medianSpread(rates(c.points[k]))
	smallest := c.points[k][0].bytes
	for _, s := range c.points[k] {
		smallest = min(smallest, s.bytes)
	}
	p.facts.DecidingSample = planner.MeasuredFact(smallest, 0, fmt.Sprintf("smallest of %d samples of %s requests over %d lanes", repeats, size(k.size), lanes))
	p.drift(c.all[k])
	how := "direct reads"
	if !direct {
		how = "buffered reads of uncached parts, no read-ahead"
	}
	p.notes = append([]string{fmt.Sprintf("%s from all over the file, median of %d; %s a sample where it decides (%s, %d lanes)", how, repeats, size(smallest), size(k.size), lanes)}, p.notes...)
	if spread > spreadNotice {
		p.notes = append(p.notes, fmt.Sprintf("wide spread: its samples differ by %.0f %%", 100*spread))
	}
	if smallest < decidingMost && smallest < int64(len(d.windows))*d.size {
		p.notes = append(p.notes, "samples ended by time, the drive being slow")
	}
	if d.rounds > 0 {
		p.notes = append(p.notes, "more was read than the file holds: parts came twice, and the drive's own cache may have served them")
	}
	if p.drive.place().remote {
		p.notes = append(p.notes, "served through "+p.drive.place().name+": what is cached behind it cannot be seen from here")
	}
	p.facts.Curve = planner.MeasuredFact(c.list(), spread, strings.Join(p.notes, "; "))
}

// drift compares the last sample at the deciding point with the first.
func (p *storageProbe) drift(s []sample) {
	first, last := s[0].rate(), s[len(s)-1].rate()
	drift := last/first - 1
	how := fmt.Sprintf("%s/s at %.1f s, %s/s at %.1f s", size(int64(first)), s[0].when, size(int64(last)), s[len(s)-1].when)
	p.facts.Drift = planner.MeasuredFact(drift, 0, how)
	if long := s[len(s)-repeats:]; len(s) >= repeats {
		if d := long[len(long)-1].rate()/long[0].rate() - 1; math.Abs(d) > math.Abs(drift) {
			drift = d
		}
	}
	if math.Abs(drift) > driftNotice {
		p.notes = append(p.notes, fmt.Sprintf("the drive changed while it was read (%+.0f %%)", 100*drift))
	}
}

// verifyDirect compares direct reads with buffered ones at the head, in the
// middle and at the end of the experts. It returns whether they may be used.
func (p *storageProbe) verifyDirect() bool {
	const probe = 64 << 10
	no := func(why string) bool {
		p.facts.ODirect = planner.MeasuredFact(false, 0, why)
		return false
	}
	direct, err := p.drive.lane(true, probe)
	if err != nil {
		return no("direct reads are refused on this path: " + err.Error())
	}
	defer direct.close()
	plain, err := p.drive.lane(false, probe)
	if err != nil {
		p.facts.ODirect = planner.UnknownFact[bool](err.Error(), owedStorage)
		return false
	}
	defer plain.close()
	offsets := p.verifyOffsets(probe)
	for _, off := range offsets {
		want, err := plain.read(off, probe)
		if err != nil {
			p.facts.ODirect = planner.UnknownFact[bool](fmt.Sprintf("buffered read at %d: %v", off, err), owedStorage)
			return false
		}
		got, err := direct.read(off, probe)
		if err != nil {
			return no(fmt.Sprintf("a direct read at %d failed: %v", off, err))
		}
		if !bytes.Equal(want, got) {
			return no(fmt.Sprintf("a direct read at %d returned other bytes than a buffered one", off))
		}
	}
	p.facts.ODirect = planner.MeasuredFact(true, 0, fmt.Sprintf("%d regions compared with buffered reads", len(offsets)))
	return true
}

// verifyOffsets spreads the compared regions and includes the last bytes of
// the file, where a direct read comes back short.
func (p *storageProbe) verifyOffsets(n int64) []int64 {
	length, _ := p.drive.size()
	e := p.target.extents
	mid := e[len(e)/2]
	return []int64{
		min(e[0].off, length-n),
		min(mid.off+mid.n/2, length-n),
		length - n,
	}
}

// decidingRate is the curve's rate at the slice and a lane count.
func (p *storageProbe) decidingRate(lanes int) float64 {
	for _, x := range p.facts.Curve.Value {
		if x.Size == p.target.slice && x.Lanes == lanes {
			return x.BytesPerS
		}
	}
	return 0
}

// stamped dates the facts and shares the cost of the probe among those that
// were read.
func (p *storageProbe) stamped() planner.StorageFacts {
	return stampStorage(p.facts, stamp(p.start), p.now().Sub(p.start).Seconds())
}

func stampStorage(f planner.StorageFacts, at string, cost float64) planner.StorageFacts {
	f.Curve = f.Curve.Timed(cost, at)
	f.FileSystem = f.FileSystem.Timed(0, at)
	f.ODirect, f.MapSerialises = f.ODirect.Timed(0, at), f.MapSerialises.Timed(0, at)
	for _, x := range []*planner.Fact[float64]{&f.Refault, &f.Buffered, &f.RateMapped, &f.RateUnmapped, &f.Drift} {
		*x = x.Timed(0, at)
	}
	f.Align, f.DecidingSample = f.Align.Timed(0, at), f.DecidingSample.Timed(0, at)
	return f
}
