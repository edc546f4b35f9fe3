package analysis

import (
	"slices"
	"sort"

	"github.com/bmoe/bmoe/engine/cachepolicy"
)

// LRUCurve is LRU's hits at every budget, from one pass over a routing by
// stack distances (Mattson et al., 1970), in bytes so that it is exact for
// slices of different sizes under one budget.
type LRUCurve struct {
	all, decode curve
}

// curve holds lookups in ascending order of distance, with running sums.
type curve struct {
	distance []int64
	hitBytes []int64 // of the lookups up to and including this one
	total    Tally   // of all lookups, first uses included; no hits
}

type distanceOf struct{ distance, bytes int64 }

// NewLRUCurve measures a routing.
func NewLRUCurve(r *Routing) *LRUCurve {
	var all, decode []distanceOf
	var allTotal, decodeTotal Tally
	eachDistance(r, func(n, _ int, distance int64) {
		b := &r.Batches[n]
		bytes := r.ExpertBytes[b.Layer]
		allTotal.add(false, bytes)
		if !b.Prompt {
			decodeTotal.add(false, bytes)
		}
		if distance == cachepolicy.Never {
			return
		}
		all = append(all, distanceOf{distance, bytes})
		if !b.Prompt {
			decode = append(decode, distanceOf{distance, bytes})
		}
	})
	return &LRUCurve{newCurve(all, allTotal), newCurve(decode, decodeTotal)}
}

func eachDistance(r *Routing, f func(batch, id int, distance int64)) {
	d := cachepolicy.NewDistances(r.Experts, r.ExpertBytes)
	distance := make([]int64, r.Experts)
	for n := range r.Batches {
		b := &r.Batches[n]
		d.Touch(b.Layer, b.IDs, distance)
		for i := range b.IDs {
			f(n, i, distance[i])
		}
	}
}

func newCurve(of []distanceOf, total Tally) curve {
	slices.SortFunc(of, func(a, b distanceOf) int {
		switch {
		case a.distance < b.distance:
			return -1
		case a.distance > b.distance:
			return 1
		}
		return 0
	})
	c := curve{total: total}
	var sum int64
	for _, d := range of {
		sum += d.bytes
		c.distance = append(c.distance, d.distance)
		c.hitBytes = append(c.hitBytes, sum)
	}
	return c
}

func (c *curve) at(budget int64) Tally {
	t := c.total
	n := sort.Search(len(c.distance), func(i int) bool { return c.distance[i] > budget })
	if n > 0 {
		t.Hits, t.HitBytes = int64(n), c.hitBytes[n-1]
	}
	return t
}

// At returns LRU's tallies under a byte budget.
func (c *LRUCurve) At(budgetBytes int64) ReplayResult {
	return ReplayResult{Policy: StackDistance, BudgetBytes: budgetBytes, All: c.all.at(budgetBytes), Decode: c.decode.at(budgetBytes)}
}

// stackDistanceReplay is the curve at one budget, with the outcome of every
// lookup told to observe.
func stackDistanceReplay(r *Routing, budgetBytes int64, observe func(batch, id int, hit bool)) ReplayResult {
	res := ReplayResult{Policy: StackDistance, BudgetBytes: budgetBytes}
	eachDistance(r, func(n, i int, distance int64) {
		hit := distance <= budgetBytes
		b := &r.Batches[n]
		res.add(b, hit, r.ExpertBytes[b.Layer])
		if observe != nil {
			observe(n, i, hit)
		}
	})
	return res
}
