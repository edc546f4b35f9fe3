package analysis

import (
	"github.com/bmoe/bmoe/engine/cachepolicy"
	"github.com/bmoe/bmoe/engine/trace"
	"github.com/bmoe/bmoe/results/record"
)

// NewRoutingFromLog is the routing a session kept in memory.
func NewRoutingFromLog(l *trace.Log) *Routing {
	r := &Routing{}
	r.Experts, r.ExpertBytes = l.Shape()
	collector := cachepolicy.NewCollector(r.Experts)
	l.Each(func(b trace.Batch) {
		ids, counts := collector.Distinct(b.Picks)
		r.Batches = append(r.Batches, RoutedBatch{
			Layer: b.Layer, Tokens: b.Tokens, Prompt: b.Prompt, Turn: b.Turn,
			IDs: append([]int32(nil), ids...), Counts: append([]int32(nil), counts...),
		})
	})
	return r
}

// Bounds of a histogram's work and size.
const (
	histogramBins  = 256     // of LRU, whose curve takes one pass
	replayWork     = 4 << 20 // lookups replayed for a curve in all
	minReplayBins  = 8
	mostReplayBins = 48
)

// HitHistogram is a policy's decode hit curve on a routing as a histogram over
// cache sizes. LRU's is exact at every bin's size. Another policy is replayed
// at sizes at equal ratios, more of them the shorter the routing; between
// those the curve is not known. ok is false for a routing without decode or a
// policy that does not exist.
func HitHistogram(r *Routing, policy string) (h record.Histogram, ok bool) {
	h = record.Histogram{Policy: policy, Phase: "decode"}
	if policy == cachepolicy.LRU {
		NewLRUCurve(r).decode.histogram(&h)
		return h, h.Lookups > 0
	}
	var lookups int64
	for i := range r.Batches {
		lookups += int64(len(r.Batches[i].IDs))
	}
	if lookups == 0 {
		return h, false
	}
	bins := int(min(mostReplayBins, max(minReplayBins, replayWork/lookups)))
	var before int64
	for _, size := range geometric(float64(r.TokenCycle())/8, float64(r.RoutedBytes()), bins) {
		res, err := Replay(r, policy, int64(size))
		if err != nil {
			return h, false
		}
		h.Lookups = res.Decode.Lookups
		// No bin can be negative: a policy that is no stack algorithm may hit
		// a little less with a little more.
		if hits := max(before, res.Decode.Hits); hits > before {
			h.Bins = append(h.Bins, record.HistogramBin{Bytes: int64(size), Count: hits - before})
			before = hits
		}
	}
	h.Cold = h.Lookups - before
	return h, h.Lookups > 0
}

// histogram fills h with at most histogramBins bins of about equal counts.
// Lookups at one distance are never split.
func (c *curve) histogram(h *record.Histogram) {
	h.Lookups = c.total.Lookups
	h.Cold = h.Lookups - int64(len(c.distance))
	per := max(1, (len(c.distance)+histogramBins-1)/histogramBins)
	for from := 0; from < len(c.distance); {
		to := min(from+per, len(c.distance))
		for to < len(c.distance) && c.distance[to] == c.distance[to-1] {
			to++
		}
		h.Bins = append(h.Bins, record.HistogramBin{Bytes: c.distance[to-1], Count: int64(to - from)})
		from = to
	}
}
