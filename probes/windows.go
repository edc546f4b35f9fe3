package probes

import (
	"math/rand/v2"
	"slices"

	"github.com/bmoe/bmoe/engine/model"
)

// extent is a run of bytes of a file.
type extent struct{ off, n int64 }

// target is the file a storage probe reads and which parts of it matter.
type target struct {
	path    string
	extents []extent // routed experts; of a dense model every weight
	slice   int64    // bytes of the expert slice that most bytes come in
}

// storageTarget picks the shard that holds most expert bytes.
func storageTarget(m *model.Model) target {
	byShard := make([]int64, len(m.Shards))
	bySlice := map[int64]int64{}
	for i := range m.ExpertTensors {
		t := &m.ExpertTensors[i]
		byShard[t.Shard] += t.Bytes
		bySlice[t.SliceBytes] += t.Bytes
	}
	dense := len(m.ExpertTensors) == 0
	if dense {
		for i := range m.Dense {
			byShard[m.Dense[i].Shard] += m.Dense[i].Bytes
		}
	}
	shard := 0
	for i, n := range byShard {
		if n > byShard[shard] {
			shard = i
		}
	}
	t := target{path: m.Shards[shard], slice: denseRequest}
	if dense {
		for i := range m.Dense {
			if m.Dense[i].Shard == shard {
				t.extents = append(t.extents, extent{m.Dense[i].Offset, m.Dense[i].Bytes})
			}
		}
		t.extents = merge(t.extents)
		return t
	}
	t.slice = heaviest(bySlice)
	for i := range m.ExpertTensors {
		if x := &m.ExpertTensors[i]; x.Shard == shard {
			t.extents = append(t.extents, extent{x.Offset, x.Bytes})
		}
	}
	return t
}

// heaviest is the slice size with the most bytes; the larger of equals.
func heaviest(bySlice map[int64]int64) int64 {
	var best int64
	for s, n := range bySlice {
		if best == 0 || n > bySlice[best] || (n == bySlice[best] && s > best) {
			best = s
		}
	}
	return best
}

// merge joins extents that touch or nearly do.
func merge(in []extent) []extent {
	const gap = 4096
	slices.SortFunc(in, func(a, b extent) int { return int(min(1, max(-1, a.off-b.off))) })
	var out []extent
	for _, e := range in {
		if n := len(out); n > 0 && e.off <= out[n-1].off+out[n-1].n+gap {
			out[n-1].n = max(out[n-1].n, e.off+e.n-out[n-1].off)
			continue
		}
		out = append(out, e)
	}
	return out
}

// deck deals windows of one size from all over the file, in seeded random
// order and without repeating one before all have been dealt, so that neither
// a drive's own cache nor the head of the file answers for the rest.
type deck struct {
	windows []int64 // offsets
	size    int64
	next    int
	rounds  int // times the deck was dealt out
}

// newDeck cuts the extents into windows. Above most windows it keeps a random
// choice of them.
func newDeck(extents []extent, size int64, seed uint64) *deck {
	const most = 1 << 16
	var total int64
	for _, e := range extents {
		total += e.n / size
	}
	step := max(1, (total+most-1)/most)
	d := &deck{size: size}
	rng := rand.New(rand.NewPCG(seed, uint64(size)))
	for _, e := range extents {
		for i := rng.Int64N(step); i < e.n/size; i += step {
			d.windows = append(d.windows, e.off+i*size)
		}
	}
	rng.Shuffle(len(d.windows), func(i, j int) { d.windows[i], d.windows[j] = d.windows[j], d.windows[i] })
	return d
}

// deal returns the next window's offset; false when the file has none.
func (d *deck) deal() (int64, bool) {
	if len(d.windows) == 0 {
		return 0, false
	}
	off := d.windows[d.next]
	if d.next++; d.next == len(d.windows) {
		d.next, d.rounds = 0, d.rounds+1
	}
	return off, true
}

// left is how many bytes the deck has before it repeats itself.
func (d *deck) left() int64 { return int64(len(d.windows)-d.next) * d.size }

// dealt is how many windows have been dealt at least once.
func (d *deck) dealt() int {
	if d.rounds > 0 {
		return len(d.windows)
	}
	return d.next
}
