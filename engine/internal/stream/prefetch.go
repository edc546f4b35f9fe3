package stream

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Guesses. Between a layer's last read and the next layer's routing a matmul,
// attention and a router are computed, and the drive has nothing to do: which
// experts come next is not known. The next router, applied to this layer's
// input, guesses it; the likeliest expert that is not cached begins to be read
// behind everything that was asked for. Only as much of it as the drive is
// expected to read before the routing is known: a wrong read that is under way
// then delays the right ones. A guess is read into a slot lent for guesses, so
// that no expert is evicted for one that may not come, and a right one changes
// places with the slot of the victim that its expert would have cost anyway.

const (
	guessSlots  = 2  // of a group: a wrong guess may still be read while the next is made
	guessRoom   = 32 // slots a group has at least if it is to lend those
	guessScored = 64 // guesses that are only scored before one is acted on
)

// States of a guessed read. Lanes start and end reads, the router calls them
// off or adopts them; a ticket in the upper bits tells one guess's from the next.
const (
	guessIdle = iota // never asked for, called off, or failed
	guessQueued
	guessBegun
	guessRead
	guessAdopted // under way, and its batch counts it
	guessStates
)

// guessedRead is one projection's slice.
type guessedRead struct{ state atomic.Int32 }

// move takes the read from one state to another, if it is there.
func (g *guessedRead) move(ticket, from, to int32) bool {
	return g.state.CompareAndSwap(ticket*guessStates+from, ticket*guessStates+to)
}

func (g *guessedRead) is(ticket, state int32) bool {
	return g.state.Load() == ticket*guessStates+state
}

// underWay reports whether a lane may be writing to the slot of a read so far.
func underWay(state int32) bool {
	at := state % guessStates
	return at == guessBegun || at == guessAdopted
}

// guess is an expert that may come, and the slot it is read into.
type guess struct {
	ticket int32
	expert int32
	slot   int32 // -1: none is lent
	reads  [numProj]guessedRead
}

// end is what a lane says when it has read, or failed to. It reports whether
// nobody counts on the read: a failure is then forgotten.
func (g *guessedRead) end(ticket int32, err error) (unclaimed bool) {
	to := int32(guessRead)
	if err != nil {
		to = guessIdle
	}
	if unclaimed = g.move(ticket, guessBegun, to); !unclaimed {
		g.state.Store(ticket*guessStates + guessRead)
	}
	wake(&g.state, 1)
	return unclaimed
}

func (g *guess) busy() bool {
	for p := range g.reads {
		if underWay(g.reads[p].state.Load()) {
			return true
		}
	}
	return false
}

// callOff withdraws the reads that no lane has begun, and reports how many have.
func (g *guess) callOff() (begun int64) {
	for p := range g.reads {
		r := &g.reads[p]
		if !r.move(g.ticket, guessQueued, guessIdle) && !r.is(g.ticket, guessIdle) && r.state.Load()/guessStates == g.ticket {
			begun++
		}
	}
	return begun
}

// ended waits until no lane is reading for a guess, and reports false if one
// does not end.
func (l *lanes) ended(g *guess) bool {
	for p := range g.reads {
		if !l.until(&g.reads[p].state, func(at int32) bool { return !underWay(at) }) {
			return false
		}
	}
	return true
}

// claim makes a projection's read part of its batch, which counts it already,
// and reports false where there is none: it has to be asked for.
func (g *guess) claim(p int, b *batch) bool {
	r := &g.reads[p]
	if r.move(g.ticket, guessBegun, guessAdopted) {
		return true
	}
	if r.is(g.ticket, guessRead) {
		b.left.Add(-1)
		return true
	}
	return false
}

// mean is a mean of the last guessScored observations or so.
type mean struct {
	of float64
	n  int
}

func (m *mean) add(x float64) {
	m.n = min(m.n+1, guessScored)
	m.of += (x - m.of) / float64(m.n)
}

// guesser decides what is guessed.
type guesser struct {
	slots  [][guessSlots]guess // by group
	layer  int                 // the guess is about; -1: there is none
	expert int32
	made   *guess // what is read for it; nil: nothing

	right   mean      // 1 for a guess that came true, 0 for another
	service mean      // seconds a slice takes
	idle    mean      // seconds from a layer's last read to the next routing
	asked   time.Time // when the layer before asked for reads
	n       int       // how many those were
}

func newGuesser(groups int) *guesser {
	g := &guesser{slots: make([][guessSlots]guess, groups), layer: -1}
	for i := range g.slots {
		for k := range g.slots[i] {
			g.slots[i][k].slot = -1
		}
	}
	return g
}

// observe learns from the layer before, whose last read ended at last.
func (g *guesser) observe(now, last time.Time) {
	if g.n > 0 && last.After(g.asked) {
		g.service.add(last.Sub(g.asked).Seconds() / float64(g.n))
		g.idle.add(now.Sub(last).Seconds())
	}
	g.n = 0
}

// worth is how many slices of a guess are worth reading. A share f of a slice
// falls into idle time. A right guess saves that much of a read, a wrong one
// delays what is wanted by the rest: it is worth it where f > 1 - right.
func (g *guesser) worth() int {
	if g.right.n < guessScored || g.right.of < 0.5 || g.service.of <= 0 {
		return 0
	}
	return int(g.idle.of/g.service.of + g.right.of)
}

// score says whether the guess about a layer came true.
func (g *guesser) score(layer int, distinct []int32) (right bool) {
	if g.layer < 0 {
		return false
	}
	right = g.layer == layer && slices.Contains(distinct, g.expert)
	if right {
		g.right.add(1)
	} else {
		g.right.add(0)
	}
	g.layer = -1
	return right
}

// Guess says which of the experts that are not cached a layer will likeliest
// pick, when the layer before it has been routed. It fails the run if that was
// not told: the experts in use could be given up for the guess.
func (s *Stream) Guess(layer int, expert int32) bool {
	g := s.guesses
	if !s.narrow || s.prompt || s.rehearsing {
		return true
	}
	if s.routed != layer-1 {
		s.Fail(fmt.Errorf("layer %d was guessed about when layer %d was routed last", layer, s.routed))
		return false
	}
	began := time.Now()
	g.score(-1, nil) // a guess that met no Route was about experts that were all cached
	s.callOff()
	g.layer, g.expert = layer, expert
	if n := g.worth(); n > 0 {
		if g.made = s.lend(layer); g.made != nil {
			s.readAhead(layer, g.made, n)
		}
	}
	s.stats.ManageS += time.Since(began).Seconds()
	return true
}

// lend finds a slot for a guess about a layer; nil where none can be spared.
func (s *Stream) lend(layer int) *guess {
	group := s.plan.groupOf[layer]
	a := s.arenas[group]
	if a.limit < guessRoom || a.limit >= len(a.g.layers)*s.cfg.Experts-guessSlots {
		return nil
	}
	for i := range s.guesses.slots[group] {
		g := &s.guesses.slots[group][i]
		if g.busy() {
			continue
		}
		if g.slot < 0 {
			slot, ok := s.vacate(layer)
			if !ok {
				return nil
			}
			g.slot = slot
		}
		return g
	}
	return nil
}

// readAhead asks for the first n projections of a guess, behind all else.
func (s *Stream) readAhead(layer int, g *guess, n int) {
	g.ticket = (g.ticket + 1) % (1 << 27)
	g.expert = s.guesses.expert
	a := s.arenas[s.plan.groupOf[layer]]
	for p := range g.reads {
		g.reads[p].state.Store(g.ticket*guessStates + guessIdle)
	}
	for _, p := range execOrder {
		t := s.plan.tensors[layer][p]
		if t == nil || n == 0 {
			continue
		}
		n--
		g.reads[p].state.Store(g.ticket*guessStates + guessQueued)
		s.lanes.queue.put(request{
			tensor: t, expert: g.expert, dst: a.slot(p, g.slot), phase: s.plan.phase(t),
			batch: s.lanes.current(p), guess: &g.reads[p], ticket: g.ticket,
		})
	}
	s.lanes.queue.hold()
}

// meet settles the guess about a layer whose routing is known. What stays made
// is right, and at least one of its reads has begun.
func (s *Stream) meet(layer int, distinct []int32) {
	g := s.guesses
	g.observe(time.Now(), s.lanes.lastRead())
	right, made := g.score(layer, distinct), g.made
	if begun := s.callOff(); right && begun > 0 {
		g.made = made
		s.stats.PrefetchReadsUsed += begun
	}
}

// callOff withdraws what is read for the last guess and has not begun.
func (s *Stream) callOff() (begun int64) {
	if made := s.guesses.made; made != nil {
		begun = made.callOff()
		s.stats.PrefetchReads += begun
		s.guesses.made = nil
	}
	return begun
}

// dropGuesses takes back the slots that were lent. Reads under way end first.
func (s *Stream) dropGuesses() {
	g := s.guesses
	s.callOff()
	g.layer, g.n = -1, 0
	for group := range g.slots {
		for i := range g.slots[group] {
			lent := &g.slots[group][i]
			if lent.slot < 0 {
				continue
			}
			if !s.lanes.ended(lent) {
				continue // a lane hangs in it: the slot is lost
			}
			s.arenas[group].release(lent.slot)
			lent.slot = -1
		}
	}
}
