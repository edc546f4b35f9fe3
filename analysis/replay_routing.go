package analysis

import (
	"github.com/bmoe/bmoe/engine/cachepolicy"
	"github.com/bmoe/bmoe/engine/trace"
)

// RoutedBatch is one graph's run of one layer.
type RoutedBatch struct {
	Layer  int
	IDs    []int32 // distinct experts, in the order of their last use
	Counts []int32 // tokens of the batch that chose each
	Tokens int
	Prompt bool
	Turn   int
}

// Routing is a trace in the form a replay wants.
type Routing struct {
	Batches     []RoutedBatch
	Experts     int     // in a layer
	ExpertBytes []int64 // of one expert, by layer
}

// NewRouting groups a trace's rows into batches. picks is the number of the
// first row of each batch in t.Picks; its length is that of Batches.
func NewRouting(t *trace.Trace) (r *Routing, firstRow []int) {
	r = &Routing{Experts: t.Experts, ExpertBytes: make([]int64, len(t.Layers))}
	for l, layer := range t.Layers {
		r.ExpertBytes[l] = layer.ExpertBytes
	}
	collector := cachepolicy.NewCollector(t.Experts)
	var picks []int32
	for from := 0; from < len(t.Picks); {
		first := &t.Picks[from]
		picks = picks[:0]
		tokens, step := 0, int32(-1)
		to := from
		for ; to < len(t.Picks) && trace.SameBatch(first, &t.Picks[to]); to++ {
			picks = append(picks, t.Picks[to].Expert)
			if t.Picks[to].Step != step {
				tokens, step = tokens+1, t.Picks[to].Step
			}
		}
		ids, counts := collector.Distinct(picks)
		r.Batches = append(r.Batches, RoutedBatch{
			Layer: int(first.Layer), Tokens: tokens, Prompt: first.Phase == trace.Prompt, Turn: int(first.Turn),
			IDs: append([]int32(nil), ids...), Counts: append([]int32(nil), counts...),
		})
		firstRow = append(firstRow, from)
		from = to
	}
	return r, firstRow
}

// RoutedBytes is the size of every expert of every layer: a budget that holds
// it all never evicts.
func (r *Routing) RoutedBytes() int64 {
	var n int64
	for _, b := range r.ExpertBytes {
		n += b * int64(r.Experts)
	}
	return n
}

// TokenCycle is the number of bytes one decoded token looks up, the mean over
// the routing; of a routing without decode, that of its narrowest batches.
func (r *Routing) TokenCycle() int64 {
	width := make([]int64, len(r.ExpertBytes)) // experts of the layer's narrowest batch
	for i := range r.Batches {
		b := &r.Batches[i]
		if n := int64(len(b.IDs)); width[b.Layer] == 0 || n < width[b.Layer] {
			width[b.Layer] = n
		}
	}
	var n int64
	for l, bytes := range r.ExpertBytes {
		n += width[l] * bytes
	}
	return n
}
