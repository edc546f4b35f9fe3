package stream

import (
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/engine/cachepolicy"
)

// Whatever the layout, the policy, the budget and the order of graphs, a matmul
// reads exactly the file's bytes and the cache stays within its budget.
func TestServesTheFilesBytes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cfg := Config{
			Layers: rapid.IntRange(1, 6).Draw(r, "layers"), Experts: rapid.IntRange(4, 12).Draw(r, "experts"),
			Used: rapid.IntRange(1, 4).Draw(r, "used"), Policy: rapid.SampledFrom(cachepolicy.Names()).Draw(r, "policy"),
			Lanes: rapid.IntRange(1, 4).Draw(r, "lanes"), Overlap: rapid.Bool().Draw(r, "overlap"),
			PrefillSlots: rapid.IntRange(1, 2).Draw(r, "slots"), PrefillOnDemand: rapid.Bool().Draw(r, "on demand"),
			GroupSlots: rapid.IntRange(0, 20).Draw(r, "group"),
		}
		sizes := rapid.SampledFrom([][][]int64{
			{{1024, 1024, 512}},                     // multiples of the alignment
			{{1000, 1000, 700}},                     // no common phase
			{{1024, 1024, 512}, {2048, 2048, 1024}}, // two slice sizes
			{{0, 0, 512, 2048}},                     // fused gate and up
			{{0, 512, 512}, {0, 0, 0}},              // no gate; layers without experts
		}).Draw(r, "sizes")
		var total int64
		for l := range cfg.Layers {
			for _, n := range sizes[l%len(sizes)] {
				total += n * int64(cfg.Experts)
			}
		}
		cfg.BudgetBytes = int64(rapid.Float64Range(0, 1.2).Draw(r, "share") * float64(total))
		m := newFake(r, cfg, rapid.SampledFrom([]int64{1, 512}).Draw(r, "align"), sizes)
		defer m.s.Close()
		if rapid.Bool().Draw(r, "populate") {
			m.s.Populate(func() int64 { return 1 << 40 })
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		for range rapid.IntRange(1, 12).Draw(r, "graphs") {
			tokens, prompt := 1, false
			if rapid.Bool().Draw(r, "prompt") {
				tokens, prompt = rapid.IntRange(1, 30).Draw(r, "tokens"), true
			}
			err := m.graph(tokens, prompt, func(l int) []int32 { return picks(rnd, cfg.Experts, cfg.Used, tokens) })
			if err != nil {
				r.Fatal(err)
			}
			m.consistent()
		}
	})
}

// consistent checks the books: slots belong to one resident each, and the
// policy knows the same residents.
func (m *fakeModel) consistent() {
	s := m.s
	used := make([]map[int32]bool, len(s.arenas))
	for g := range used {
		used[g] = map[int32]bool{}
		for _, i := range s.arenas[g].freeSlots {
			used[g][i] = true
		}
	}
	for i, slot := range s.slotOf {
		l, e := i/s.cfg.Experts, int32(i%s.cfg.Experts)
		if resident := slot >= 0; resident != s.policy.Resident(l, e) {
			m.t.Fatalf("layer %d expert %d: slot %d, policy says resident=%v", l, e, slot, !resident)
		}
		if slot < 0 {
			continue
		}
		g := s.plan.groupOf[l]
		if used[g][slot] || int(slot) >= s.arenas[g].open {
			m.t.Fatalf("layer %d expert %d: slot %d is taken, free or closed", l, e, slot)
		}
		used[g][slot] = true
	}
	for g, a := range s.arenas {
		if len(used[g]) != a.open {
			m.t.Fatalf("group %d: %d slots accounted for, %d open", g, len(used[g]), a.open)
		}
	}
	c := s.Counters()
	if floor := int64(s.cfg.Used) * s.arenas[0].g.slotBytes * 4; c.CacheResidentBytes > max(c.CacheBudgetBytes, floor) {
		m.t.Fatalf("%d bytes resident, the budget is %d", c.CacheResidentBytes, c.CacheBudgetBytes)
	}
}

func small(overlap bool) Config {
	return Config{Layers: 4, Experts: 16, Used: 4, Policy: "lru", Lanes: 2, Overlap: overlap, BudgetBytes: 40 << 10, ReadTimeout: 300 * time.Millisecond}
}

var smallSizes = [][]int64{{1024, 1024, 1024}}

// A read that fails, comes short or hangs ends the graph with an error that
// says what was being read, and the next graph is served the right bytes.
func TestReadFaults(t *testing.T) {
	broken := errors.New("input/output error")
	faults := map[string]struct {
		fault func(int, int64) (int, error)
		delay func() time.Duration
		want  error
	}{
		"error": {fault: func(int, int64) (int, error) { return 0, broken }, want: nil},
		"after": {fault: func(int, int64) (int, error) { return 1 << 20, broken }, want: broken},
		"short": {fault: func(int, int64) (int, error) { return 100, nil }, want: io.ErrUnexpectedEOF},
	}
	for name, f := range faults {
		for _, overlap := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				m := newFake(t, small(overlap), 1, smallSizes)
				rnd := rand.New(rand.NewPCG(3, 4))
				pick := func(int) []int32 { return picks(rnd, 16, 4, 1) }
				if err := m.graph(1, false, pick); err != nil {
					t.Fatal(err)
				}
				m.src.mu.Lock()
				m.src.fault = f.fault
				m.src.mu.Unlock()
				var err error
				for range 5 {
					if err = m.graph(1, false, pick); err != nil {
						break
					}
				}
				if name == "error" { // all bytes came: the error beside them is no failure
					if err != nil {
						t.Fatalf("a complete read failed: %v", err)
					}
					return
				}
				var re *ReadError
				if !errors.As(err, &re) || !errors.Is(err, f.want) || re.File != "fake.gguf" || !strings.Contains(err.Error(), "expert") {
					t.Fatalf("got %v, want a ReadError over %v", err, f.want)
				}
				m.src.mu.Lock()
				m.src.fault = nil
				m.src.mu.Unlock()
				m.s.Reset()
				m.consistent()
				for range 8 {
					if err := m.graph(1, false, pick); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// A read that fails when the run has been broken off, so that nobody waits for
// it, leaves nothing in the cache either.
func TestReadFaultThatNobodyWaitsFor(t *testing.T) {
	m := newFake(t, small(true), 1, smallSizes)
	m.src.fault = func(int, int64) (int, error) { return 1 << 20, errors.New("broken") }
	if _, err := m.s.Begin(1, false); err != nil {
		t.Fatal(err)
	}
	if !m.s.Route(0, []int32{0, 1, 2, 3}, 4, 1, make([]int32, 4)) {
		t.Fatal(m.s.Err())
	}
	m.s.Reset()
	for e, slot := range m.s.slotOf[:4] {
		if slot >= 0 {
			t.Errorf("expert %d has slot %d: its read failed", e, slot)
		}
	}
	m.consistent()
}

func TestHangingLane(t *testing.T) {
	m := newFake(t, small(false), 1, smallSizes)
	release := make(chan struct{})
	m.src.delay = func() time.Duration { <-release; return 0 }
	rnd := rand.New(rand.NewPCG(3, 4))
	err := m.graph(1, false, func(int) []int32 { return picks(rnd, 16, 4, 1) })
	close(release)
	if !errors.Is(err, errReadTimeout) {
		t.Fatalf("got %v, want %v", err, errReadTimeout)
	}
}

func TestLanesReadAtOnce(t *testing.T) {
	cfg := small(false)
	cfg.Lanes = 4
	m := newFake(t, cfg, 1, smallSizes)
	m.src.delay = func() time.Duration { return 2 * time.Millisecond }
	rnd := rand.New(rand.NewPCG(3, 4))
	if err := m.graph(1, false, func(int) []int32 { return picks(rnd, 16, 4, 1) }); err != nil {
		t.Fatal(err)
	}
	if m.src.most < 2 || m.s.Counters().Lanes < 2 {
		t.Errorf("at most %d reads at once, %d lanes served: lanes do not overlap", m.src.most, m.s.Counters().Lanes)
	}
}

// The token's path allocates nothing once it is warm.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	cfg := small(true)
	m := newFake(t, cfg, 1, smallSizes)
	rnd := rand.New(rand.NewPCG(3, 4))
	var rows [64][]int32
	for i := range rows {
		rows[i] = picks(rnd, 16, 4, 1)
	}
	n := 0
	step := func() {
		_, _ = m.s.Begin(1, false)
		for l := range cfg.Layers {
			n++
			if !m.s.Route(l, rows[n%len(rows)], 4, 1, m.slots[:4]) {
				t.Fatal(m.s.Err())
			}
			for _, p := range execOrder {
				m.s.Wait(l, p)
			}
		}
	}
	m.slots = make([]int32, 4)
	for range 100 {
		step()
	}
	if allocs := testing.AllocsPerRun(200, step); allocs > 0 {
		t.Errorf("%v allocations a token", allocs)
	}
}

// BenchmarkRouteAllHits reports the hook's own time for a lookup that hits: by
// itself, and with the processor's caches swept before each layer, as the
// matmuls of a real run do.
func BenchmarkRouteAllHits(b *testing.B) {
	b.Run("warm", func(b *testing.B) { routeAllHits(b, func() {}) })
	swept := make([]byte, 4<<20)
	b.Run("swept", func(b *testing.B) {
		routeAllHits(b, func() {
			for i := 0; i < len(swept); i += 64 {
				swept[i]++
			}
		})
	})
}

func routeAllHits(b *testing.B, between func()) {
	cfg := Config{Layers: 48, Experts: 128, Used: 8, Policy: "a2d", Lanes: 1, Overlap: true, BudgetBytes: 1 << 40}
	m := newFake(b, cfg, 1, [][]int64{{64, 64, 64}})
	rnd := rand.New(rand.NewPCG(3, 4))
	var rows [512][]int32
	for i := range rows {
		rows[i] = picks(rnd, 128, 8, 1)
	}
	slots := make([]int32, 8)
	n := 0
	token := func() {
		_, _ = m.s.Begin(1, false)
		for l := range cfg.Layers {
			between()
			n++
			m.s.Route(l, rows[n%len(rows)], 8, 1, slots)
			for _, p := range execOrder {
				m.s.Wait(l, p)
			}
		}
	}
	for range 200 {
		token()
	}
	b.ReportAllocs()
	before := m.s.Counters()
	for b.Loop() {
		token()
	}
	after := m.s.Counters()
	b.ReportMetric(1e9*(after.ManageS-before.ManageS)/float64(after.Lookups-before.Lookups), "ns/lookup")
	runtime.KeepAlive(m)
}

// With two slice sizes of which one is used evenly and the other hardly varies,
// memory moves to where it serves, and the budget holds.
func TestMemoryMovesBetweenSizes(t *testing.T) {
	cfg := Config{Layers: 8, Experts: 16, Used: 2, Policy: "lru", Lanes: 1, BudgetBytes: 120 << 10}
	m := newFake(t, cfg, 1, [][]int64{{1024, 1024, 1024}, {2048, 2048, 2048}})
	rnd := rand.New(rand.NewPCG(5, 6))
	turn := func() float64 {
		before := m.s.Counters()
		for range 400 {
			err := m.graph(1, false, func(l int) []int32 {
				if l%2 == 0 {
					return picks(rnd, 16, 2, 1)
				}
				return []int32{int32(rnd.IntN(2)), 2 + int32(rnd.IntN(2))}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		c := m.s.Counters()
		return float64(c.Hits-before.Hits) / float64(c.Lookups-before.Lookups)
	}
	first := turn()
	for range 3 {
		m.s.Rebalance()
		m.consistent()
		turn()
	}
	last := turn()
	c := m.s.Counters()
	if c.Rebalances == 0 || last < first+0.02 || c.CacheBudgetBytes > cfg.BudgetBytes {
		t.Errorf("hit rate %.3f before and %.3f after %d rebalances, budget %d of %d", first, last, c.Rebalances, c.CacheBudgetBytes, cfg.BudgetBytes)
	}
}
