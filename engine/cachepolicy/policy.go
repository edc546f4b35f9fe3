// Package cachepolicy decides which resident expert an expert cache gives up.
// It is pure bookkeeping over (layer, expert) pairs: it moves no bytes and
// knows no sizes, so the engine and the trace replayer share it. The caller
// owns the budget and evicts until its bytes or slots suffice.
//
// One batch of one layer goes like this:
//
//	p.Touch(layer, ids, counts, tokens, prompt) // every distinct expert, hit or miss
//	for each id that is not p.Resident(layer, id):
//		for no room: vl, ve, ok := p.Victim(layer); p.Remove(vl, ve)
//		p.Insert(layer, id)
//
// The experts of the last Touch are the current batch; Victim never returns
// one of them, because a graph is about to read them.
package cachepolicy

import (
	"fmt"
	"strings"
)

// Policy chooses victims. Layers and experts count from 0 and must be within
// the bounds given to New. A Policy is not safe for concurrent use, and no
// method allocates.
type Policy interface {
	// Name is the spelling New accepts.
	Name() string
	// Touch says that layer routed the distinct experts ids in one graph of
	// tokens tokens, counts[i] of which chose ids[i]. ids are in the order of
	// their last use (Collector gives that order). prompt marks a prompt's
	// batch. The ids become the current batch, in place of the one before.
	Touch(layer int, ids, counts []int32, tokens int, prompt bool)
	// Victim returns the resident to give up for a miss of layer: one of the
	// layer's group, not pinned and not in the current batch. ok is false when
	// there is none. The victim stays resident until Remove.
	Victim(layer int) (victimLayer int, expert int32, ok bool)
	// Yield returns the current batch's own resident of layer that is worth
	// less than incoming, an expert of the same batch. It is for batches that
	// are computed outside the cache (prefill slots) and are larger than it:
	// ask Victim first, then Yield; when both decline, do not admit incoming.
	Yield(layer int, incoming int32) (expert int32, ok bool)
	// Insert makes the expert resident. Inserting a resident does nothing.
	Insert(layer int, expert int32)
	// Remove makes the expert absent. Removing an absent one does nothing.
	Remove(layer int, expert int32)
	// Resident reports whether the expert is in the cache.
	Resident(layer int, expert int32) bool
	// Pin protects an expert from Victim and Yield until Unpin, resident or
	// not: a prefetch whose read is under way. Pins count.
	Pin(layer int, expert int32)
	// Unpin takes one Pin back.
	Unpin(layer int, expert int32)
	// Release ends the current batch: nothing is protected but pins. For a
	// budget that shrinks between graphs.
	Release()
}

// The policies, by the names New accepts.
const (
	A2D      = "a2d"       // aligned two-rate decayed score, over all layers of a group
	LRU      = "lru"       // least recently used, over all layers of a group
	LayerLRU = "layer-lru" // least recently used within a layer's fair share
	LayerLFU = "layer-lfu" // least frequently used within a layer's fair share
)

// Names returns the policies, the default first.
func Names() []string { return []string{A2D, LRU, LayerLRU, LayerLFU} }

// New returns the policy called name for layers x experts. groupOf[l] is the
// group of layer l, from 0: layers that share memory, so that one's victim
// makes room for another's miss. nil puts every layer in group 0.
func New(name string, layers, experts int, groupOf []int) (Policy, error) {
	if layers < 1 || experts < 1 || layers*experts > 1<<30 {
		return nil, fmt.Errorf("cache policy %s: %d layers of %d experts: want at least 1 of each and at most %d in all", name, layers, experts, 1<<30)
	}
	if groupOf != nil && len(groupOf) != layers {
		return nil, fmt.Errorf("cache policy %s: groups of %d layers given for %d layers", name, len(groupOf), layers)
	}
	for l, g := range groupOf {
		if g < 0 || g >= layers {
			return nil, fmt.Errorf("cache policy %s: layer %d is in group %d, want 0 to %d", name, l, g, layers-1)
		}
	}
	base := newState(layers, experts, groupOf)
	switch name {
	case A2D:
		return newA2D(base), nil
	case LRU:
		return newLRU(base), nil
	case LayerLRU:
		return newLayered(base, name, false), nil
	case LayerLFU:
		return newLayered(base, name, true), nil
	}
	return nil, fmt.Errorf("cache policy %q: want one of %s", name, strings.Join(Names(), ", "))
}
