package stream

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// eager lets the next guess be read whole.
func eager(s *Stream) {
	s.guesses.right = mean{of: 1, n: guessScored}
	s.guesses.service = mean{of: 1e-3, n: guessScored}
	s.guesses.idle = mean{of: 1, n: guessScored}
}

// guessed tells a guess as a graph does, the layer before having been routed.
func guessed(s *Stream, layer int, expert int32) {
	eager(s)
	s.routed = layer - 1
	s.Guess(layer, expert)
}

// prefetching is a model with room for guesses and not for all experts.
func prefetching(layers int) Config {
	cfg := small(true)
	cfg.Layers, cfg.Lanes = layers, 3
	cfg.BudgetBytes = 40 * 3 * 1536
	return cfg
}

// guessing computes a token whose layers are each guessed when the one before
// was routed: rightly with that probability, and not always.
func guessing(m *fakeModel, rnd *rand.Rand, right float64) error {
	ids := make([][]int32, m.cfg.Layers)
	for l := range ids {
		ids[l] = picks(rnd, m.cfg.Experts, m.cfg.Used, 1)
	}
	guess := func(layer int) {
		row := m.s.slotOf[layer*m.cfg.Experts : (layer+1)*m.cfg.Experts]
		for range 8 {
			e := rnd.Int32N(int32(m.cfg.Experts))
			if rnd.Float64() < right {
				e = ids[layer][rnd.IntN(len(ids[layer]))]
			}
			if row[e] < 0 {
				eager(m.s)
				m.s.Guess(layer, e)
				return
			}
		}
	}
	return m.graphWith(1, false, func(l int) []int32 { return ids[l] }, func(l int) {
		if l+1 < m.cfg.Layers && rnd.Float64() < 0.9 {
			guess(l + 1)
		}
	})
}

// inUse counts the slots that are taken and the experts that lie in one.
func (m *fakeModel) inUse() (slots, experts int) {
	for _, a := range m.s.arenas {
		slots += a.used()
	}
	for _, slot := range m.s.slotOf {
		if slot >= 0 {
			experts++
		}
	}
	return slots, experts
}

// Whatever is guessed, every matmul reads the bytes of the experts that were
// picked; between tokens come prompts, other budgets and turns that end.
func TestPrefetchServesTheRightBytes(t *testing.T) {
	var begun, used int64
	rapid.Check(t, func(r *rapid.T) {
		cfg := prefetching(rapid.SampledFrom([]int{4, 8}).Draw(r, "layers"))
		cfg.Overlap = rapid.Bool().Draw(r, "overlap")
		cfg.PrefillOnDemand = rapid.Bool().Draw(r, "on demand")
		m := newFake(r, cfg, 512, smallSizes)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		slow := rand.New(rand.NewPCG(2, 3)) // under the file's own lock
		m.src.delay = func() time.Duration {
			m.src.mu.Lock()
			defer m.src.mu.Unlock()
			return time.Duration(slow.IntN(10)/9) * 200 * time.Microsecond
		}
		right := rapid.Float64Range(0, 1).Draw(r, "right")
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0:
				if err := m.graph(24, true, func(int) []int32 { return picks(rnd, cfg.Experts, cfg.Used, 24) }); err != nil {
					r.Fatal(err)
				}
			case 1:
				if err := m.s.Resize(cfg.BudgetBytes * int64(rapid.IntRange(2, 5).Draw(r, "part")) / 4); err != nil {
					r.Fatal(err)
				}
			case 2:
				m.s.Reset()
			default:
				if err := guessing(m, rnd, right); err != nil {
					r.Fatal(err)
				}
			}
		}
		m.s.dropGuesses()
		if held, resident := m.inUse(); held != resident {
			r.Fatalf("%d slots in use by %d experts", held, resident)
		}
		c := m.s.Counters()
		begun, used = begun+c.PrefetchReads, used+c.PrefetchReadsUsed
		if c.PrefetchReadsUsed > c.PrefetchReads {
			r.Fatalf("%d of %d prefetched slices were used", c.PrefetchReadsUsed, c.PrefetchReads)
		}
	})
	if begun == 0 || used == 0 || used == begun {
		t.Errorf("%d slices were begun on a guess and %d used: right and wrong guesses were to be tested", begun, used)
	}
}

// settled waits until each read of a guess has been begun and has ended.
func (g *guess) settled() {
	for p := range g.reads {
		for r := &g.reads[p]; r.is(g.ticket, guessQueued) || underWay(r.state.Load()); {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// A wrong guess that cannot be read is nobody's loss; a right one is read again
// and fails where it is waited for.
func TestPrefetchFailure(t *testing.T) {
	broken := errors.New("broken")
	for _, right := range []float64{0, 1} {
		m := newFake(t, prefetching(4), 512, smallSizes)
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 30 {
			if err := guessing(m, rnd, 1); err != nil {
				t.Fatal(err)
			}
		}
		m.src.mu.Lock()
		m.src.fault = func(int, int64) (int, error) { return 1 << 20, broken }
		m.src.mu.Unlock()
		absent := int32(-1)
		for e, slot := range m.s.slotOf[:m.cfg.Experts] {
			if slot < 0 {
				absent = int32(e)
			}
		}
		guessed(m.s, 0, absent)
		m.s.guesses.made = nil // as after another layer's routing
		if right == 1 {
			m.s.guesses.layer = -1
			guessed(m.s, 0, absent)
		}
		lent := &m.s.guesses.slots[m.s.plan.groupOf[0]]
		for i := range lent {
			lent[i].settled()
		}
		var ids []int32
		for e, slot := range m.s.slotOf[:m.cfg.Experts] {
			if slot >= 0 && len(ids) < m.cfg.Used {
				ids = append(ids, int32(e))
			}
		}
		if right == 1 {
			ids[0] = absent
		}
		ok := m.s.Route(0, ids, m.cfg.Used, 1, m.slots[:m.cfg.Used]) && m.s.Wait(0, Gate)
		if ok != (right == 0) {
			t.Errorf("right %v: the layer goes on: %v, error %v", right, ok, m.s.Err())
		}
		if right == 1 && !errors.Is(m.s.Err(), broken) {
			t.Errorf("got %v, want %v", m.s.Err(), broken)
		}
		m.s.Reset()
	}
}

// A lane that hangs in a wrong guess does not hang the end.
func TestPrefetchHangs(t *testing.T) {
	cfg := prefetching(4)
	cfg.ReadTimeout = 20 * time.Millisecond
	m := &fakeModel{t: t}
	*m = *newFake(t, cfg, 512, smallSizes)
	release := make(chan struct{})
	m.src.mu.Lock()
	m.src.delay = func() time.Duration { <-release; return 0 }
	m.src.mu.Unlock()
	m.s.narrow = true
	guessed(m.s, 1, 0)
	time.Sleep(5 * time.Millisecond)
	began := time.Now()
	m.s.dropGuesses()
	if !m.s.lanes.hung || time.Since(began) > 5*time.Second {
		t.Errorf("after %v: hung %v, want true at once", time.Since(began), m.s.lanes.hung)
	}
	close(release)
}

// What the drive's idle time holds is read, and what may fall beyond only so far
// as the guesses' record is worth the delay.
func TestPrefetchWorth(t *testing.T) {
	for _, tc := range []struct {
		right, idle, service float64
		scored, want         int
	}{
		{0.8, 1, 1, guessScored - 1, 0}, // not yet scored
		{0.8, 1, 1, guessScored, 1},
		{0.8, 1.1, 1, guessScored, 1},
		{0.8, 1.3, 1, guessScored, 2}, // 0.3 of the second > 1 - 0.8
		{0.8, 0.1, 1, guessScored, 0},
		{0.8, 0.3, 1, guessScored, 1},
		{0.4, 5, 1, guessScored, 0}, // rather wrong than right
		{0.8, 1, 0, guessScored, 0}, // no read was timed
	} {
		g := newGuesser(1)
		g.right, g.idle, g.service = mean{tc.right, tc.scored}, mean{tc.idle, 1}, mean{tc.service, 1}
		if got := g.worth(); got != tc.want {
			t.Errorf("right %g, idle %g, a slice takes %g, %d scored: %d slices, want %d", tc.right, tc.idle, tc.service, tc.scored, got, tc.want)
		}
	}
}

// A guess that comes before the routing of the layer it follows ends the run: it
// could take a slot of that layer's experts.
func TestPrefetchBeforeTheRoutingIsRefused(t *testing.T) {
	for _, routed := range []int{-1, 0, 2} {
		m := newFake(t, prefetching(4), 512, smallSizes)
		eager(m.s)
		if routed >= 0 {
			m.s.Resident(routed, []int32{0}, 1, 1)
		}
		m.s.Guess(2, 1)
		if m.s.Err() == nil || m.s.guesses.made != nil {
			t.Errorf("layer %d was routed last, layer 2 guessed: error %v, read ahead: %v", routed, m.s.Err(), m.s.guesses.made != nil)
		}
	}
}

// A model that is cached whole lends no slots.
func TestPrefetchLeavesAFullCacheAlone(t *testing.T) {
	cfg := prefetching(4)
	cfg.BudgetBytes = 1 << 30
	m := newFake(t, cfg, 512, smallSizes)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		if err := guessing(m, rnd, 1); err != nil {
			t.Fatal(err)
		}
	}
	if c := m.s.Counters(); c.PrefetchReads > 0 || c.Evictions > 0 {
		t.Errorf("%d reads on guesses, %d evictions", c.PrefetchReads, c.Evictions)
	}
}

// A layer whose experts were all cached is not routed here: the guess about it
// is withdrawn by the next, before its slot is lent again.
func TestPrefetchOfALayerThatWasCached(t *testing.T) {
	cfg := prefetching(4)
	cfg.Lanes = 1
	m := newFake(t, cfg, 512, smallSizes)
	release := make(chan struct{})
	m.src.mu.Lock()
	m.src.delay = func() time.Duration { <-release; return 0 }
	m.src.mu.Unlock()
	defer close(release)
	guessed(m.s, 0, 0) // the lane hangs in its first read
	first := m.s.guesses.made
	for m.s.lanes.queue.ready.Load() == 3 {
		time.Sleep(time.Millisecond)
	}
	guessed(m.s, 1, 1)
	for _, p := range []int{Up, Down} {
		if !first.reads[p].is(first.ticket, guessIdle) {
			t.Errorf("%s of the first guess may still be read", projNames[p])
		}
	}
	if n := m.s.stats.PrefetchReads; n != 1 {
		t.Errorf("%d reads of the first guess were begun, want 1", n)
	}
	if m.s.guesses.right.n != guessScored || m.s.guesses.right.of > 0.99 {
		t.Errorf("the first guess was not scored as wrong: %+v", m.s.guesses.right)
	}
	if m.s.guesses.made == first {
		t.Error("the slot that is being read into was lent again")
	}
}
