package analysis

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bmoe/bmoe/results/record"
)

func twoBins(hitsLow, hitsHigh, lookups int64) record.Histogram {
	return record.Histogram{Lookups: lookups, Bins: []record.HistogramBin{{Bytes: 100, Count: hitsLow}, {Bytes: 200, Count: hitsHigh - hitsLow}}}
}

// One routing of 64 tokens with half of its lookups hit: a binomial deviation of
// sqrt(0.25/64) = 0.0625, Student's 90 % point at 3 degrees 2.3534, and a new
// routing beside the old one: 2.3534 x 0.0625 x sqrt(2) = 0.2080.
func TestPoolOfOneCurveIsBinomial(t *testing.T) {
	got := PoolCurves([]record.Histogram{twoBins(320, 640, 640)}, 10, 64, 0.9)
	if len(got) != 2 || got[0].Bytes != 100 || got[0].Hit != 0.5 {
		t.Fatalf("%+v", got)
	}
	if math.Abs(got[0].Half-0.2080) > 1e-3 {
		t.Errorf("half-width %.4f, want 0.2080", got[0].Half)
	}
	if got[1].Half != 0 {
		t.Errorf("half-width %.4f where every lookup hits", got[1].Half)
	}
}

// Curves that agree narrow the interval, curves that differ keep it wide, and a
// pool weights by lookups.
func TestPoolOfSeveralCurves(t *testing.T) {
	h := twoBins(320, 500, 640)
	one := PoolCurves([]record.Histogram{h}, 10, 64, 0.9)
	same := PoolCurves([]record.Histogram{h, h, h, h}, 10, 64, 0.9)
	if same[0].Half >= one[0].Half {
		t.Errorf("four equal curves: %.3f, one: %.3f", same[0].Half, one[0].Half)
	}
	apart := PoolCurves([]record.Histogram{twoBins(64, 500, 640), twoBins(576, 600, 640)}, 10, 64, 0.9)
	if apart[0].Half <= one[0].Half {
		t.Errorf("two curves far apart: %.3f, one: %.3f", apart[0].Half, one[0].Half)
	}
	if got := PoolCurves([]record.Histogram{twoBins(0, 1, 100), twoBins(300, 300, 300)}, 10, 64, 0.9); got[0].Hit != 0.75 {
		t.Errorf("hit rate %.3f of 400 lookups, want 0.75", got[0].Hit)
	}
	if got := PoolCurves(nil, 10, 64, 0.9); len(got) != 0 {
		t.Errorf("no curves gave %+v", got)
	}
}

// The interval covers what it says: routings whose hit rates vary about a common
// one, by more than the prior assumes and by less.
func TestPooledIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, sd := range []float64{0.02, 0.05} {
		for _, n := range []int{1, 3, 8} {
			draw := func() record.Histogram {
				k := int64(1000 * min(1, max(0, 0.6+sd*rng.NormFloat64())))
				return record.Histogram{Lookups: 1000, Bins: []record.HistogramBin{{Bytes: 100, Count: k}}}
			}
			in, of := 0, 2000
			for range of {
				list := make([]record.Histogram, n)
				for i := range list {
					list[i] = draw()
				}
				p := PoolCurves(list, 10, 64, 0.9)[0]
				next := draw()
				if h := CurveAt(&next, 100); math.Abs(h-p.Hit) <= p.Half {
					in++
				}
			}
			if share := float64(in) / float64(of); share < 0.88 {
				t.Errorf("sd %.2f, %d curves: %.3f of the intervals held", sd, n, share)
			}
		}
	}
}

func TestCurveAt(t *testing.T) {
	h := twoBins(20, 60, 100)
	for _, tc := range []struct {
		bytes int64
		want  float64
	}{{0, 0}, {50, 0.1}, {100, 0.2}, {150, 0.4}, {200, 0.6}, {1000, 0.6}} {
		if got := CurveAt(&h, tc.bytes); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("at %d: %.3f, want %.3f", tc.bytes, got, tc.want)
		}
	}
}
