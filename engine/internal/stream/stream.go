// Package stream serves a model's routed experts from its file: slot arenas in
// memory, a cache policy that decides which experts stay, lanes that read the
// missing ones, and the router's answers. It knows nothing of llama.cpp: the
// engine binds tensors on its behalf, so that tests drive it with a fake model.
package stream

import (
	"errors"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/engine/cachepolicy"
	"github.com/bmoe/bmoe/engine/counters"
)

// Projections, in the order the graph multiplies them. They equal the
// binding's numbers.
const (
	Gate = iota
	Up
	Down
	GateUp
	numProj
)

// execOrder is the order in which reads are issued: the first matmul's weights
// are wanted first.
var execOrder = [numProj]int{Gate, GateUp, Up, Down}

// projNames are the projections as they stand in the file.
var projNames = [numProj]string{"gate", "up", "down", "gate_up"}

// Tensor says where one layer's experts of one projection lie.
type Tensor struct {
	Layer, Proj int
	Shard       int
	Offset      int64 // of expert 0, in the shard's file
	Slice       int64 // bytes of one expert
	// Repack, where it is set, writes a slice in the layout the matmul wants.
	// Lanes call it, several at once.
	Repack func(dst, src []byte)
}

// Binder points an expert tensor at an array of n slices stride bytes apart.
type Binder interface {
	Bind(layer, proj int, data uintptr, n int, stride int64)
}

// Config sizes a Stream.
type Config struct {
	Layers, Experts, Used int
	Tensors               []Tensor
	BudgetBytes           int64  // of the cache; 0: only what one batch needs
	Policy                string // a cachepolicy name
	Lanes                 int
	Overlap               bool
	PrefillSlots          int // 1 or 2
	PrefillOnDemand       bool
	Device                bool          // a device may compute wide graphs; see OnDevice
	Pin, PinFit           bool          // lock the cache; shrink it to what is granted
	GroupSlots            int           // most slots an arena should have; 0: the default
	ReadTimeout           time.Duration // a read that takes longer fails the run; 0: 30 s
}

// Stream implements the router of one context.
type Stream struct {
	cfg         Config
	src         Source
	binder      Binder
	plan        *geometry
	arenas      []*arena
	policy      cachepolicy.Policy
	picks       *cachepolicy.Collector
	lanes       *lanes
	populator   *populator
	room        func() int64 // for it; nil: it was not asked for
	slotOf      []int32      // layer*Experts + expert -> slot in the layer's group, -1 absent
	seen        []bool       // read before, for cold against re-read
	wide        *prefill
	narrow      bool // mode of the running graph
	prompt      bool
	device      bool // the running graph's expert matmuls may run on a device
	rehearsing  bool // nothing of what runs now is to be left behind
	routed      int  // layer whose routing was told last, -1 before any
	picked      int  // distinct experts of it
	stats       counters.Counters
	trace       TraceFunc
	err         error
	split       *splitter
	guesses     *guesser
	misses      []int32
	residentNow func(expert int32) bool
}

// TraceFunc receives each layer's routing: rows of used experts, and whether
// an expert was resident when the batch began.
type TraceFunc func(layer int, ids []int32, used, tokens int, resident func(expert int32) bool)

// New builds the arenas and starts the lanes. The caller closes the Stream.
func New(cfg Config, src Source, binder Binder) (*Stream, error) {
	if cfg.ReadTimeout == 0 {
		cfg.ReadTimeout = 30 * time.Second
	}
	plan, err := layout(&cfg, src.Align())
	if err != nil {
		return nil, err
	}
	s := &Stream{cfg: cfg, src: src, binder: binder, plan: plan, narrow: true, routed: -1}
	if s.policy, err = cachepolicy.New(cfg.Policy, cfg.Layers, cfg.Experts, plan.groupOf); err != nil {
		return nil, err
	}
	s.guesses = newGuesser(len(plan.groups))
	s.picks = cachepolicy.NewCollector(cfg.Experts)
	s.slotOf = make([]int32, cfg.Layers*cfg.Experts)
	for i := range s.slotOf {
		s.slotOf[i] = -1
	}
	s.seen = make([]bool, len(s.slotOf))
	s.misses = make([]int32, 0, cfg.Experts)
	for i := range plan.groups {
		a, err := newArena(&plan.groups[i])
		if err != nil {
			s.Close()
			return nil, err
		}
		s.arenas = append(s.arenas, a)
	}
	s.lanes = startLanes(src, cfg.Lanes, cfg.Experts, cfg.ReadTimeout)
	s.wide = newPrefill(s)
	s.stats.CacheBudgetBytes = plan.budget()
	s.split = newSplitter(plan, &s.cfg)
	if cfg.Pin {
		s.pin(cfg.PinFit)
	}
	s.bindNarrow()
	return s, nil
}

// Close stops the lanes and gives the memory back, except what a read that
// hangs may still write to. It may be called twice.
func (s *Stream) Close() error {
	var errs []error
	if s.lanes != nil {
		s.dropGuesses()
		if !s.lanes.stop() {
			return fmt.Errorf("%s: %w: its memory is not given back", s.src.Name(0), errReadTimeout)
		}
	}
	s.populator.stop()
	for _, a := range s.arenas {
		errs = append(errs, a.free())
	}
	if s.wide != nil {
		errs = append(errs, s.wide.drop())
	}
	return errors.Join(errs...)
}

// Trace sets who is told of every routing; nil for nobody.
func (s *Stream) Trace(f TraceFunc) {
	s.trace = f
	s.residentNow = func(e int32) bool { return s.slotOf[s.routed*s.cfg.Experts+int(e)] >= 0 }
}

// Begin says that the next graph computes that many tokens, as part of a
// prompt or not, and reports whether ids are remapped to slots for it.
func (s *Stream) Begin(tokens int, prompt bool) (remap bool, err error) {
	s.prompt = prompt
	narrow := !s.device && s.fits(tokens)
	switch {
	case !narrow:
		s.dropGuesses()
		if err := s.wide.build(); err != nil {
			return false, err
		}
		if s.device {
			s.wide.bindAll()
		}
	case !s.narrow:
		if err := s.wide.finish(); err != nil {
			return false, err
		}
		s.bindNarrow()
	}
	s.narrow = narrow
	return narrow, nil
}

// OnDevice says whether the next graphs may hand expert matmuls to a device,
// which copies the experts that the router's own ids name: they then lie in a
// prefill slot, under those ids, and have been read before the copy is made.
func (s *Stream) OnDevice(on bool) { s.device = on && s.cfg.Device }

// Offloaded counts a projection of the layer routed last whose picked experts
// were copied to a device.
func (s *Stream) Offloaded(layer, proj int) {
	if t := s.plan.tensors[layer][proj]; t != nil {
		s.stats.BytesToDevice += int64(s.picked) * t.Slice
	}
}

// Rehearse says that the next graphs are no part of the run: nobody is told of
// their routing, and when it ends nothing of them is left in the cache, its
// policy or the counters.
func (s *Stream) Rehearse(on bool) error {
	s.rehearsing = on
	if on {
		return nil
	}
	s.Reset()
	s.dropAll()
	clear(s.seen)
	s.stats = counters.Counters{
		CacheBudgetBytes: s.stats.CacheBudgetBytes, CacheLockedBytes: s.stats.CacheLockedBytes,
		CachePinRefusedBytes: s.stats.CachePinRefusedBytes,
	}
	s.lanes.forget()
	s.split = newSplitter(s.plan, &s.cfg)
	var err error
	s.policy, err = cachepolicy.New(s.cfg.Policy, s.cfg.Layers, s.cfg.Experts, s.plan.groupOf)
	return err
}

// fits reports whether the experts of a graph go through the cache's arenas.
// A prompt that would turn over most of an arena is better served beside it.
func (s *Stream) fits(tokens int) bool {
	if tokens == 1 {
		return true
	}
	return min(tokens*s.cfg.Used, s.cfg.Experts) <= s.plan.minSlots/2
}

// bindNarrow points every expert tensor at its group's arena.
func (s *Stream) bindNarrow() {
	for i := range s.cfg.Tensors {
		t := &s.cfg.Tensors[i]
		g := s.plan.groupOf[t.Layer]
		a := s.arenas[g]
		s.binder.Bind(t.Layer, t.Proj, a.base[t.Proj]+uintptr(s.plan.phase(t)), a.limit, a.g.stride[t.Proj])
	}
}

// Err is why the last graph was stopped, or nil.
func (s *Stream) Err() error { return s.err }

// Fail records the first error of a graph.
func (s *Stream) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Reset forgets an error, after its graph has ended: reads still under way are
// waited for, and what they were to fill is not in the cache.
func (s *Stream) Reset() {
	failed := s.lanes.settle()
	s.dropGuesses()
	s.wide.loaded = -1
	if failed || s.err != nil {
		s.dropAll()
	}
	s.err = nil
}

// dropAll empties the cache. After a failed read nothing says which slots hold
// what they should, and a failure is rare.
func (s *Stream) dropAll() {
	for i, slot := range s.slotOf {
		if slot < 0 {
			continue
		}
		l, e := i/s.cfg.Experts, int32(i%s.cfg.Experts)
		s.policy.Remove(l, e)
		s.arenas[s.plan.groupOf[l]].release(slot)
		s.slotOf[i] = -1
	}
}

// Spent is the time since New that went into waiting for reads and into
// managing the cache, in seconds.
func (s *Stream) Spent() (wait, manage float64) {
	c := &s.stats
	return c.WaitRouteS + c.WaitGateS + c.WaitUpS + c.WaitDownS, c.ManageS
}

// Counters are totals since New.
func (s *Stream) Counters() counters.Counters {
	c := s.stats
	s.lanes.count(&c)
	var slots int64
	for _, a := range s.arenas {
		slots += int64(a.used()) * a.g.slotBytes
	}
	c.CacheResidentBytes = slots
	return c
}

// ReadError says which expert could not be read.
type ReadError struct {
	File       string
	Offset     int64
	Layer      int
	Expert     int32
	Projection string
	Err        error
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("%s: reading expert %d of layer %d (%s) at offset %d: %v", e.File, e.Expert, e.Layer, e.Projection, e.Offset, e.Err)
}

func (e *ReadError) Unwrap() error { return e.Err }
