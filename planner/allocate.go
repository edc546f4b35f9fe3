package planner

import (
	"cmp"
	"fmt"
	"slices"
)

// candidate is something RAM can be spent on. Per is the seconds of a token
// that one byte saves; a candidate without a measured price is never preferred
// to one with it, it keeps its place in the plain order.
type candidate struct {
	name       string
	bytes      int64
	per        float64
	priced     bool
	fractional bool
	fixed      bool // the caller or a rule requires it
}

// allocation is the list of candidates being spent down.
type allocation struct {
	list []candidate
	left int64
	got  map[string]int64
}

// allocateSteps run in this order; each is one sentence of the account.
var allocateSteps = []struct {
	name string
	run  func(*planning, *allocation)
}{
	{"groups", (*planning).listCandidates},
	{"rank", (*planning).rankCandidates},
	{"spend", (*planning).spend},
	{"device", (*planning).choosePrefillDevice},
	{"cache", (*planning).sizeCache},
	{"notes", (*planning).noteAllocation},
}

// allocate spends the budget: buffers first because nothing chooses them, then
// candidates by seconds saved per byte.
func (st *planning) allocate() {
	if !st.stream {
		return
	}
	if !st.hold.known || !st.m.known {
		st.keep("cache-mb", Decision{
			Provenance: Unprobed, Topic: "cache-unpriced",
			Brief:  "The cache's size is left to the default; the memory or the model is not known.",
			Reason: "owed: how much may be held and the model's expert sizes",
		})
		return
	}
	st.noteBuffers()
	a := &allocation{got: map[string]int64{}}
	for _, step := range allocateSteps {
		step.run(st, a)
	}
}

// listCandidates splits the model by how its bytes are read, not by role: a
// matrix read whole for each token, a table of which a token reads one row, and
// the experts a cache would serve, above its floor and below it.
func (st *planning) listCandidates(a *allocation) {
	a.left = st.hold.usable - st.buffers.held()
	if st.dense.held > 0 {
		c := candidate{name: "dense", bytes: st.dense.held, fixed: st.pinned("dense-weights") || st.repackByHand()}
		w := st.p.Host.Narrow.Or(0)
		if r := st.p.Storage.Refault.Or(0); r > 0 && w > 0 {
			c.priced = true
			c.per = float64(st.m.read) * (1/r - 1/w) / float64(c.bytes)
		}
		a.list = append(a.list, c)
	}
	floor := min(st.floor(), st.m.whole())
	full := st.m.whole()
	first := candidate{name: "cache-floor", bytes: floor}
	rest := candidate{name: "cache", bytes: full - floor, fractional: true}
	none := 0.0
	if reads, ok := st.layerReads(0); ok {
		none = reads.expect(1, func(m int) float64 { return reads.busy[m] })
	}
	if none > 0 {
		first.priced, rest.priced = true, true
		h := st.creditedHits(floor)
		first.per = h * none / float64(max(1, floor))
		rest.per = (1 - h) * none / float64(max(1, full-floor))
	}
	a.list = append(a.list, first, rest)
}

// rankCandidates orders by price where both prices are known; what is required
// goes first, and an unmeasured price moves nothing.
func (st *planning) rankCandidates(a *allocation) {
	for _, c := range a.list {
		if c.name == "dense" && !c.priced {
			st.note("unmeasured-refault", "-", Unprobed, "What dropped weights cost to read back was not measured; they are kept in memory first, as a rule.",
				"the dense set keeps its place before the cache without a price; owed: the rate of page-sized scattered reads and the one-token matmul")
			return
		}
	}
	slices.SortStableFunc(a.list, func(x, y candidate) int {
		switch {
		case x.fixed != y.fixed:
			if x.fixed {
				return -1
			}
			return 1
		case x.priced && y.priced:
			return cmp.Compare(y.per, x.per)
		}
		return 0
	})
	// A cache is worth nothing below its floor, so its floor goes before it.
	i := slices.IndexFunc(a.list, func(c candidate) bool { return c.name == "cache" })
	j := slices.IndexFunc(a.list, func(c candidate) bool { return c.name == "cache-floor" })
	if i < j {
		floor := a.list[j]
		a.list = slices.Insert(slices.Delete(a.list, j, j+1), i, floor)
	}
}

// spend goes down the list. What does not fit whole is skipped, except the
// cache, which takes what there is.
func (st *planning) spend(a *allocation) {
	for _, c := range a.list {
		take := c.bytes
		switch {
		case c.fixed:
		case c.fractional:
			take = max(0, min(take, a.left))
			if c.name == "cache" && a.got["cache-floor"] == 0 && st.floor() > 0 {
				take = 0
			}
		case take > a.left:
			take = 0
		}
		a.got[c.name] = take
		a.left -= take
	}
	if st.dense.held > 0 && a.got["dense"] == 0 {
		st.dropDense(a)
	}
}

// dropDense leaves the dense set mapped when something worth more per byte
// took the room.
func (st *planning) dropDense(a *allocation) {
	st.decide("dense-weights", "mmap", Decision{
		Provenance: Derived, Topic: "dense-mapped",
		Brief: fmt.Sprintf("The %s read for every token stay in the file's mapping; a byte of cache saves more here.", size(st.m.dense)),
		Reason: fmt.Sprintf("candidates by seconds saved per GiB: %s; the dense set did not fit behind what ranked before it",
			ranking(a.list)),
	})
	st.dense = denseChoice{}
}

// noteAllocation writes the ranking down.
func (st *planning) noteAllocation(a *allocation) {
	if len(a.list) < 2 || !a.list[0].priced {
		return
	}
	st.note("allocation", a.list[0].name, Derived,
		"Memory goes first to what saves most time per byte: "+a.list[0].name+".",
		"seconds of a token saved per GiB: "+ranking(a.list))
}

func ranking(list []candidate) string {
	text := ""
	for i, c := range list {
		if i > 0 {
			text += ", "
		}
		if c.priced {
			text += fmt.Sprintf("%s %.3g (%s)", c.name, c.per*float64(gib), size(c.bytes))
		} else {
			text += fmt.Sprintf("%s unpriced (%s)", c.name, size(c.bytes))
		}
	}
	return text
}
