package probes

import (
	"errors"
	"math"
	"testing"

	"github.com/bmoe/bmoe/planner"
)

// Named, as the tests of docs/reliability.md are, for what users of other
// programs reported.

// A file that the page cache holds gives the drive's rate, not the memory's, or
// no rate.
func TestFieldProbeIsNotFooledByThePageCache(t *testing.T) {
	d := newFakeDrive(2e9)
	d.inCache = true
	f := probeFake(t, d, 1<<30)
	if rate, ok := at(f, testSlice, 8); !ok || math.Abs(rate/2e9-1) > 0.02 {
		t.Errorf("rate %g, %v with the file cached; the drive reads 2e9", rate, ok)
	}
	if f.Buffered.OK() {
		t.Errorf("buffered rate %g of a file that lies in memory", f.Buffered.Value)
	}
	d = newFakeDrive(2e9)
	d.inCache, d.noDirect = true, errors.New("invalid argument")
	unknown(t, probeFake(t, d, 1<<30).Curve, "page cache")
	d = newFakeDrive(2e9)
	d.inCache, d.hides, d.noDirect = true, true, errors.New("invalid argument")
	unknown(t, probeFake(t, d, 1<<30).Curve, "page cache")
}

// A path on which direct reads are the slower ones is found: both rates are
// measured, each as it is.
func TestFieldSlowerODirectIsFound(t *testing.T) {
	d := newFakeDrive(2e9)
	d.directRate = 0.5e9
	f := probeFake(t, d, 1<<30)
	direct, ok := at(f, testSlice, 8)
	if !ok || math.Abs(direct/0.5e9-1) > 0.02 {
		t.Errorf("direct rate %g, %v, want 0.5e9", direct, ok)
	}
	if buffered := f.Buffered.Or(0); math.Abs(buffered/2e9-1) > 0.02 || f.Buffered.Provenance != planner.Measured {
		t.Errorf("buffered rate %+v, want 2e9 measured", f.Buffered)
	}
}
