package probes

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"
)

// fakeDrive is a drive in virtual time: a read moves the clock by what it
// would have cost. Its rate may depend on the request, on how much was read
// so far and on whether the file is mapped.
type fakeDrive struct {
	mu         sync.Mutex
	clock      time.Time
	length     int64
	stored     int64
	where      place
	rate       func(d *fakeDrive, n int64) float64 // bytes per second
	inCache    bool                                // the page cache serves everything
	hides      bool                                // it does not tell what the cache holds
	noDirect   error
	directRate float64 // of direct reads, where it is another; 0: it is not
	lies       bool    // direct reads return other bytes
	failAt     int     // opening this many lanes fails
	readFail   error

	open      int
	total     int64 // bytes read
	fetched   int64
	maps      int
	peakBuf   int64
	buf       int64
	forgotten int64
}

func newFakeDrive(rate float64) *fakeDrive {
	const length = 4 << 30
	return &fakeDrive{
		clock: time.Unix(1_800_000_000, 0), length: length, stored: length, where: place{name: "ext4", dev: "8:0"},
		rate: func(*fakeDrive, int64) float64 { return rate },
	}
}

func (d *fakeDrive) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock
}

func (d *fakeDrive) place() place          { return d.where }
func (d *fakeDrive) size() (int64, int64)  { return d.length, d.stored }
func (d *fakeDrive) align() (int64, bool)  { return 512, true }
func (d *fakeDrive) served() (int64, bool) { d.mu.Lock(); defer d.mu.Unlock(); return d.fetched, true }
func (d *fakeDrive) forget(_, n int64)     { d.forgotten += n }
func (d *fakeDrive) close()                {}

func (d *fakeDrive) cached(_, n int64) (int64, bool) {
	if d.hides {
		return 0, false
	}
	if d.inCache {
		return n, true
	}
	return 0, true
}

func (d *fakeDrive) mapped() (func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maps++
	return func() { d.mu.Lock(); d.maps--; d.mu.Unlock() }, nil
}

func (d *fakeDrive) lane(direct bool, most int64) (lane, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if direct && d.noDirect != nil {
		return nil, d.noDirect
	}
	if d.failAt > 0 && d.open+1 >= d.failAt {
		return nil, errors.New("too many open files")
	}
	d.open++
	d.buf += most
	d.peakBuf = max(d.peakBuf, d.buf)
	return &fakeLane{d: d, direct: direct, most: most}, nil
}

type fakeLane struct {
	d      *fakeDrive
	direct bool
	most   int64
}

func (l *fakeLane) read(off, n int64) ([]byte, error) {
	d := l.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if off < 0 || off+n > d.length || n > l.most {
		return nil, fmt.Errorf("bad read of %d at %d, buffer %d", n, off, l.most)
	}
	if d.readFail != nil {
		return nil, d.readFail
	}
	rate := d.rate(d, n)
	if l.direct && d.directRate > 0 {
		rate = d.directRate
	}
	if d.inCache && !l.direct {
		rate = 20e9
	} else {
		d.fetched += n
	}
	d.total += n
	d.clock = d.clock.Add(time.Duration(float64(n) / rate * 1e9))
	fill := byte(off)
	if l.direct && d.lies {
		fill++
	}
	return bytes.Repeat([]byte{fill}, int(min(n, 4096))), nil
}

func (l *fakeLane) close() {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	l.d.open--
	l.d.buf -= l.most
}
