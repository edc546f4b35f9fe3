package experiments

import (
	"github.com/bmoe/bmoe/results/record"
)

// block is one block of an experiment in its final attempt.
type block struct {
	number  int
	attempt int
	runs    map[string]*record.StoredRun // by arm
}

// finished says that a run's outcome stands: it was not cut short by us.
func finished(r *record.StoredRun) bool { return r.Run.State != record.StateInterrupted }

// wantedSlots groups the schedule by block, warm-up included, in order.
func wantedSlots(e *record.Experiment) (order []int, slots map[int][]record.Slot) {
	slots = map[int][]record.Slot{}
	for _, s := range e.Schedule {
		if _, seen := slots[s.Block]; !seen {
			order = append(order, s.Block)
		}
		slots[s.Block] = append(slots[s.Block], s)
	}
	return order, slots
}

// attempts returns, per block, the runs of each attempt by slot index.
func attempts(runs []record.StoredRun) map[int]map[int]map[int]*record.StoredRun {
	out := map[int]map[int]map[int]*record.StoredRun{}
	for i := range runs {
		r := &runs[i]
		b := out[r.Slot.Block]
		if b == nil {
			b = map[int]map[int]*record.StoredRun{}
			out[r.Slot.Block] = b
		}
		if b[r.Attempt] == nil {
			b[r.Attempt] = map[int]*record.StoredRun{}
		}
		b[r.Attempt][r.Slot.Index] = r
	}
	return out
}

// completeAttempt is the first attempt of a block in which every slot has an
// outcome. A block is never put together from two attempts: the machine was in
// another state in between.
func completeAttempt(want []record.Slot, tried map[int]map[int]*record.StoredRun) (attempt, last int, ok bool) {
	for a, bySlot := range tried {
		last = max(last, a)
		whole := true
		for _, s := range want {
			r := bySlot[s.Index]
			whole = whole && r != nil && finished(r)
		}
		if whole && (!ok || a < attempt) {
			attempt, ok = a, true
		}
	}
	return attempt, last, ok
}

// completeBlocks returns the judged blocks in order.
func completeBlocks(e *record.Experiment, runs []record.StoredRun) []block {
	order, slots := wantedSlots(e)
	tried := attempts(runs)
	var out []block
	for _, b := range order {
		if b == WarmupBlock {
			continue
		}
		a, _, ok := completeAttempt(slots[b], tried[b])
		if !ok {
			continue
		}
		bl := block{number: b, attempt: a, runs: map[string]*record.StoredRun{}}
		for _, s := range slots[b] {
			bl.runs[s.Arm] = tried[b][a][s.Index]
		}
		out = append(out, bl)
	}
	return out
}

// Remaining is how many runs of the schedule have no outcome that counts, with
// blocks that are half done counted whole.
func Remaining(e *record.Experiment, runs []record.StoredRun) int {
	order, slots := wantedSlots(e)
	tried := attempts(runs)
	n := 0
	for _, b := range order {
		if _, _, ok := completeAttempt(slots[b], tried[b]); !ok {
			n += len(slots[b])
		}
	}
	return n
}
