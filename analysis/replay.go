package analysis

import (
	"fmt"
	"strings"

	"github.com/bmoe/bmoe/engine/cachepolicy"
)

// Replay-only policies, beside those of cachepolicy.
const (
	// Belady evicts what is needed furthest in the future: the bound no policy
	// that does not know the future can pass (with equal slice sizes).
	Belady = "belady"
	// StackDistance is LRU computed at all budgets in one pass.
	StackDistance = "stack-distance"
)

// ReplayPolicies returns the names Replay accepts.
func ReplayPolicies() []string { return append(cachepolicy.Names(), Belady, StackDistance) }

// Tally counts a replay. A lookup is one distinct expert of one layer's batch;
// bytes are those of the experts looked up.
type Tally struct {
	Lookups, Hits   int64
	Bytes, HitBytes int64
}

func (t *Tally) add(hit bool, bytes int64) {
	t.Lookups++
	t.Bytes += bytes
	if hit {
		t.Hits++
		t.HitBytes += bytes
	}
}

// HitRate is the share of lookups that hit; 0 when there were none.
func (t Tally) HitRate() float64 { return ratio(t.Hits, t.Lookups) }

// ByteHitRate is the share of bytes that were in the cache; 0 when there were
// none.
func (t Tally) ByteHitRate() float64 { return ratio(t.HitBytes, t.Bytes) }

// ReadBytes is what had to be read.
func (t Tally) ReadBytes() int64 { return t.Bytes - t.HitBytes }

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// ReplayResult is one policy at one budget.
type ReplayResult struct {
	Policy      string
	BudgetBytes int64
	All         Tally // prompt and decode
	Decode      Tally
}

func (r *ReplayResult) add(b *RoutedBatch, hit bool, bytes int64) {
	r.All.add(hit, bytes)
	if !b.Prompt {
		r.Decode.add(hit, bytes)
	}
}

// Replay plays a routing through a policy under one byte budget over all slice
// sizes. The rules: one lookup per distinct expert per layer and batch, hits
// judged by what was resident as the batch began; everything missed is
// admitted; then, after the batch, residents are evicted until the budget
// holds, never one of the batch's own.
func Replay(r *Routing, policy string, budgetBytes int64) (ReplayResult, error) {
	return ReplayObserved(r, policy, budgetBytes, nil)
}

// ReplayObserved is Replay that also tells observe about every lookup: the
// batch's index in r.Batches, the expert's index in its IDs and the outcome.
func ReplayObserved(r *Routing, policy string, budgetBytes int64, observe func(batch, id int, hit bool)) (ReplayResult, error) {
	res := ReplayResult{Policy: policy, BudgetBytes: budgetBytes}
	var p replayer
	switch policy {
	case StackDistance:
		return stackDistanceReplay(r, budgetBytes, observe), nil
	case Belady:
		p = newBelady(r)
	default:
		c, err := cachepolicy.New(policy, len(r.ExpertBytes), r.Experts, nil)
		if err != nil {
			return res, fmt.Errorf("policy %q: want one of %s", policy, strings.Join(ReplayPolicies(), ", "))
		}
		p = online{c}
	}
	var held int64
	for n := range r.Batches {
		b := &r.Batches[n]
		bytes := r.ExpertBytes[b.Layer]
		p.touch(b, n)
		for i, id := range b.IDs {
			hit := p.Resident(b.Layer, id)
			res.add(b, hit, bytes)
			if observe != nil {
				observe(n, i, hit)
			}
			if !hit {
				p.Insert(b.Layer, id)
				held += bytes
			}
		}
		for held > budgetBytes {
			l, e, ok := p.Victim(b.Layer)
			if !ok {
				break
			}
			p.Remove(l, e)
			held -= r.ExpertBytes[l]
		}
	}
	return res, nil
}

// replayer is what Replay needs of a policy.
type replayer interface {
	touch(b *RoutedBatch, n int)
	Resident(layer int, expert int32) bool
	Insert(layer int, expert int32)
	Remove(layer int, expert int32)
	Victim(layer int) (victimLayer int, expert int32, ok bool)
}

// online adapts a policy that does not know the future.
type online struct{ cachepolicy.Policy }

func (o online) touch(b *RoutedBatch, _ int) {
	o.Touch(b.Layer, b.IDs, b.Counts, b.Tokens, b.Prompt)
}
