package probes

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/planner"
)

const testSlice = 288 << 10

func probeFake(t *testing.T, d *fakeDrive, budget int64) planner.StorageFacts {
	t.Helper()
	p := &storageProbe{
		drive: d, now: d.now, page: 4096, times: defaultTimes(), budget: budget,
		target: target{path: "model.gguf", extents: []extent{{1 << 20, d.length - 2<<20}}, slice: testSlice},
	}
	f := p.run(context.Background())
	if d.open != 0 || d.maps != 0 {
		t.Errorf("left %d lanes and %d mappings behind", d.open, d.maps)
	}
	return f
}

func TestStorageRate(t *testing.T) {
	d := newFakeDrive(2e9)
	f := probeFake(t, d, 1<<30)
	rate, ok := at(f, testSlice, 8)
	if !ok || math.Abs(rate/2e9-1) > 0.02 {
		t.Errorf("rate at 8 lanes = %g, %v; want about 2e9", rate, ok)
	}
	for _, lanes := range laneCounts {
		if _, ok := at(f, testSlice, lanes); !ok {
			t.Errorf("no point at %d lanes", lanes)
		}
	}
	if planner.Ask(f.ODirect) != planner.Yes {
		t.Errorf("odirect = %+v, want yes", f.ODirect)
	}
	if n := f.DecidingSample.Or(0); n < decidingMost {
		t.Errorf("deciding sample = %d bytes, want %d", n, decidingMost)
	}
	for name, ok := range map[string]bool{
		"refault": f.Refault.OK(), "buffered": f.Buffered.OK(), "drift": f.Drift.OK(), "align": f.Align.OK(),
		"file system": f.FileSystem.OK(), "mapped": f.RateMapped.OK(), "unmapped": f.RateUnmapped.OK(),
	} {
		if !ok {
			t.Errorf("%s is unknown", name)
		}
	}
	if planner.Ask(f.MapSerialises) != planner.DontKnow {
		t.Errorf("mapping serialises = %+v: no difference is not an answer", f.MapSerialises)
	}
	if d.forgotten == 0 {
		t.Error("the buffered samples were left in the page cache")
	}
	if cost := f.Curve.CostS; cost <= 0 || cost > 3 {
		t.Errorf("cost %.2f s, want at most 3", cost)
	}
}

func TestStorageSlowDriveStaysInTime(t *testing.T) {
	d := newFakeDrive(60e6)
	f := probeFake(t, d, 1<<30)
	if rate, ok := at(f, testSlice, 8); !ok || math.Abs(rate/60e6-1) > 0.05 {
		t.Errorf("rate = %g, want about 60e6", rate)
	}
	if n := f.DecidingSample.Or(decidingMost); n >= decidingMost {
		t.Errorf("deciding sample = %d on a slow drive, want less than %d", n, decidingMost)
	}
	if !strings.Contains(f.Curve.Reason, "ended by time") {
		t.Errorf("reason %q does not say that the samples were short", f.Curve.Reason)
	}
	if f.Curve.CostS > 3 {
		t.Errorf("cost %.2f s", f.Curve.CostS)
	}
}

func TestStorageWrongRates(t *testing.T) {
	const mapSlow = 1.5
	tests := []struct {
		name   string
		change func(*fakeDrive)
		check  func(*testing.T, planner.StorageFacts)
	}{
		{"page cache and no direct reads", func(d *fakeDrive) {
			d.inCache, d.noDirect = true, errors.New("invalid argument")
		}, func(t *testing.T, f planner.StorageFacts) {
			unknown(t, f.Curve, "page cache")
			if planner.Ask(f.ODirect) != planner.No {
				t.Errorf("odirect = %+v, want no", f.ODirect)
			}
		}},
		{"page cache that nobody admits to", func(d *fakeDrive) {
			d.inCache, d.hides, d.noDirect = true, true, errors.New("invalid argument")
		}, func(t *testing.T, f planner.StorageFacts) { unknown(t, f.Curve, "page cache served") }},
		{"direct refused on an uncached file", func(d *fakeDrive) {
			d.noDirect = errors.New("invalid argument")
		}, func(t *testing.T, f planner.StorageFacts) {
			if !f.Curve.OK() || !strings.Contains(f.Curve.Reason, "buffered") || !f.Buffered.OK() {
				t.Errorf("curve %+v buffered %+v, want buffered rates that say so", f.Curve, f.Buffered)
			}
		}},
		{"direct reads return other bytes", func(d *fakeDrive) { d.lies = true }, func(t *testing.T, f planner.StorageFacts) {
			if planner.Ask(f.ODirect) != planner.No || !strings.Contains(f.ODirect.Reason, "other bytes") {
				t.Errorf("odirect = %+v, want no", f.ODirect)
			}
		}},
		{"rate drops mid-probe", func(d *fakeDrive) {
			d.rate = func(d *fakeDrive, _ int64) float64 {
				if d.total > 1200<<20 {
					return 0.6e9
				}
				return 1.8e9
			}
		}, func(t *testing.T, f planner.StorageFacts) {
			if f.Drift.Or(0) > -0.5 || !strings.Contains(f.Curve.Reason, "changed while") || f.Curve.Spread < 0.3 {
				t.Errorf("drift %+v spread %g reason %q: a drop to a third went unnoticed", f.Drift, f.Curve.Spread, f.Curve.Reason)
			}
		}},
		{"a lane count that fails", func(d *fakeDrive) { d.failAt = 6 }, func(t *testing.T, f planner.StorageFacts) {
			if _, ok := at(f, testSlice, 8); ok || !strings.Contains(f.Curve.Reason, "8 lanes: lane 6: too many open files") {
				t.Errorf("curve %+v, want no point at 8 lanes and why", f.Curve)
			}
			if _, ok := at(f, testSlice, 4); !ok {
				t.Error("4 lanes went missing too")
			}
		}},
		{"reads that fail", func(d *fakeDrive) { d.readFail = errors.New("input/output error") }, func(t *testing.T, f planner.StorageFacts) {
			unknown(t, f.Curve, "input/output error")
		}},
		{"a mapping that gets in the way", func(d *fakeDrive) {
			d.rate = func(d *fakeDrive, _ int64) float64 {
				if d.maps > 0 {
					return 1e9
				}
				return mapSlow * 1e9
			}
		}, func(t *testing.T, f planner.StorageFacts) {
			if planner.Ask(f.MapSerialises) != planner.Yes {
				t.Errorf("mapping serialises = %+v, want yes", f.MapSerialises)
			}
		}},
		{"a memory file system", func(d *fakeDrive) { d.where = place{name: "tmpfs", memory: true} }, func(t *testing.T, f planner.StorageFacts) {
			unknown(t, f.Curve, "tmpfs")
			if f.FileSystem.Or("") != "tmpfs" {
				t.Errorf("file system = %+v", f.FileSystem)
			}
		}},
		{"a sparse file", func(d *fakeDrive) { d.stored = d.length / 3 }, func(t *testing.T, f planner.StorageFacts) { unknown(t, f.Curve, "sparse") }},
		{"a tiny file", func(d *fakeDrive) { d.length, d.stored = 3<<20, 3<<20 }, func(t *testing.T, f planner.StorageFacts) {
			unknown(t, f.Curve, "smaller than one sample")
		}},
		{"served by another process", func(d *fakeDrive) {
			d.where = place{name: "fuse", remote: true}
			d.noDirect = errors.New("invalid argument")
		}, func(t *testing.T, f planner.StorageFacts) {
			if !f.Curve.OK() || !strings.Contains(f.Curve.Reason, "fuse") {
				t.Errorf("curve %+v, want a rate that says it came through fuse", f.Curve)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newFakeDrive(2e9)
			tt.change(d)
			tt.check(t, probeFake(t, d, 1<<30))
		})
	}
}

func TestStorageBuffersStayInBudget(t *testing.T) {
	for _, budget := range []int64{1 << 20, 2 << 20, 4 << 20, 64 << 20} {
		d := newFakeDrive(2e9)
		f := probeFake(t, d, budget)
		if d.peakBuf > budget {
			t.Errorf("budget %d: held %d bytes of buffers", budget, d.peakBuf)
		}
		if !f.Curve.OK() && f.Curve.Reason == "" {
			t.Errorf("budget %d: unknown without a reason", budget)
		}
	}
}

func TestStorageCancelled(t *testing.T) {
	d := newFakeDrive(2e9)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := &storageProbe{
		drive: d, now: d.now, page: 4096, times: defaultTimes(), budget: 1 << 30,
		target: target{extents: []extent{{0, d.length}}, slice: testSlice},
	}
	unknown(t, p.run(ctx).Curve, "canceled")
	if d.open != 0 {
		t.Errorf("left %d lanes open", d.open)
	}
}

func TestDeckDealsEachWindowOnce(t *testing.T) {
	d := newDeck([]extent{{100, 1000}, {5000, 350}}, 100, 3)
	seen := map[int64]bool{}
	for range 13 {
		off, _ := d.deal()
		if seen[off] {
			t.Fatalf("window %d dealt twice", off)
		}
		if in := (off >= 100 && off+100 <= 1100) || (off >= 5000 && off+100 <= 5350); !in {
			t.Fatalf("window %d is outside the extents", off)
		}
		seen[off] = true
	}
	if d.rounds != 1 || d.dealt() != 13 {
		t.Errorf("rounds %d dealt %d, want 1 and 13", d.rounds, d.dealt())
	}
}

func at(f planner.StorageFacts, size int64, lanes int) (float64, bool) {
	for _, p := range f.Curve.Value {
		if p.Size == size && p.Lanes == lanes {
			return p.BytesPerS, true
		}
	}
	return 0, false
}

func unknown[T any](t *testing.T, f planner.Fact[T], why string) {
	t.Helper()
	if f.OK() || !strings.Contains(f.Reason, why) || f.Owed == "" {
		t.Errorf("fact = %+v, want unknown because of %q, with the owed measurement", f, why)
	}
}

func TestBestLanes(t *testing.T) {
	tests := []struct {
		name  string
		rates map[int]float64
		want  int
	}{
		{"more lanes win a tie", map[int]float64{1: 500, 2: 970, 4: 1000, 8: 960}, 8},
		{"the largest within reach, not the fastest", map[int]float64{1: 1000, 2: 960, 4: 900, 8: 800}, 2},
		{"one lane on a drive that hates company", map[int]float64{1: 1000, 2: 700, 4: 500, 8: 300}, 1},
		{"a missing count", map[int]float64{1: 10, 4: 40}, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCurve()
			for lanes, r := range tt.rates {
				c.add(testSlice, lanes, sample{bytes: int64(r), seconds: 1})
				c.add(2*testSlice, lanes, sample{bytes: 1 << 40, seconds: 1})
			}
			if got := c.bestLanes(testSlice); got != tt.want {
				t.Errorf("best lanes = %d, want %d", got, tt.want)
			}
		})
	}
}
