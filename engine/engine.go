// Package engine runs a model: resident, as stock llama.cpp does, or with its
// routed experts streamed from the file. Open gives a Session, Generate makes
// text, Counters tell what it took. No cgo type leaves the package.
package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/rpcdev"
	"github.com/bmoe/bmoe/engine/internal/stream"
	"github.com/bmoe/bmoe/planner/config"
)

// Session is a loaded model with one conversation. It is not safe for
// concurrent use, except Cancel.
type Session struct {
	cfg     config.Config
	layout  *gguf.Model
	model   *llama.Model
	ctx     *llama.Context
	hook    *llama.Hook
	stream  *stream.Stream
	files   *stream.Files
	dense   *dense
	repack  *repacker
	device  *prefillDevice
	placed  *placement
	servers []*rpcdev.Server // of --rpc, once they were connected
	tap     *tap
	log     *routeLog
	loadS   float64
	ubatch  int
	past    []int32 // tokens the context holds
	pending []int32 // given out, not yet computed
	turn    int
	// hostTurn: the device failed in this turn, and the host computes the rest.
	hostTurn bool
	decode   decodeStats
	start    usage
	notes    []string
	advised  int64 // bytes of mappings advised random
}

// ErrDense says that a model has no routed experts to stream.
var ErrDense = errors.New("the model has no routed experts: it is dense, and nothing can be streamed")

// Open loads cfg.Model. The caller closes the Session.
func Open(ctx context.Context, cfg config.Config) (_ *Session, err error) {
	began := time.Now()
	layout, err := gguf.Open(cfg.Model)
	if err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, layout: layout, start: readUsage()}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if err := llama.Init(); err != nil {
		return nil, err
	}
	if err := s.resolve(); err != nil {
		return nil, err
	}
	rpcdev.Hurry(false)
	defer context.AfterFunc(ctx, func() { rpcdev.Hurry(true) })()
	if s.placed, err = s.place(ctx); err != nil {
		return nil, err
	}
	if cfg.MoeStream {
		err = s.withDevice(ctx, s.openStream)
	} else if _, err = s.armDevice(ctx); err == nil {
		err = s.openResident()
	}
	if err = s.placed.explain(err); err != nil {
		return nil, err
	}
	s.loadS = time.Since(began).Seconds()
	return s, ctx.Err()
}

// resolve replaces the knobs that mean "choose" by what was chosen.
func (s *Session) resolve() error {
	c := &s.cfg
	if c.Threads == 0 {
		c.Threads = physicalCores()
	}
	if c.ThreadsBatch == 0 {
		c.ThreadsBatch = c.Threads
	}
	c.UBatchSize = min(c.UBatch(), c.CtxSize)
	if c.BatchSize == 0 {
		c.BatchSize = c.CtxSize
	}
	c.BatchSize = max(c.BatchSize, c.UBatchSize)
	s.ubatch = c.UBatchSize
	if c.NExpertUsed > s.layout.Experts {
		return fmt.Errorf("--n-expert-used %d: %s has %d experts a layer", c.NExpertUsed, c.Model, s.layout.Experts)
	}
	return nil
}

func physicalCores() int {
	if n, err := cpu.Counts(false); err == nil && n > 0 {
		return min(n, runtime.NumCPU())
	}
	return runtime.NumCPU()
}

// used is the routing width of this session.
func (s *Session) used() int {
	if s.cfg.NExpertUsed > 0 {
		return s.cfg.NExpertUsed
	}
	return s.layout.ExpertsUsed
}

func (s *Session) modelParams() llama.ModelParams {
	p := llama.ModelParams{LoadMode: s.cfg.LoadMode, Repack: s.cfg.Repack != "off"}
	if s.cfg.NExpertUsed > 0 {
		p.UsedKey, p.Used = s.layout.Arch+".expert_used_count", s.cfg.NExpertUsed
	}
	return p
}

func (s *Session) openContext() (err error) {
	c := &s.cfg
	s.ctx, err = llama.NewContext(s.model, llama.ContextParams{
		Ctx: c.CtxSize, Batch: c.BatchSize, UBatch: c.UBatchSize,
		Threads: c.Threads, ThreadsBatch: c.ThreadsBatch,
		FlashAttn: c.FlashAttn, TypeK: c.CacheTypeK, TypeV: c.CacheTypeV,
		OpOffload: s.device != nil, Outputs: s.outputsFor(),
	}, s.hook)
	return err
}

func (s *Session) openResident() (err error) {
	p := s.modelParams()
	s.placed.params(&p, s.cfg.GPULayers)
	if s.model, err = llama.Load(s.layout.Shards, p); err != nil {
		return err
	}
	if err := s.adviseMappings(); err != nil {
		return err
	}
	return s.openContext()
}

// Config returns the configuration with every choice made.
func (s *Session) Config() config.Config { return s.cfg }

// LoadSeconds is what Open took.
func (s *Session) LoadSeconds() float64 { return s.loadS }

// Notes are what a user should know about how the session was set up.
func (s *Session) Notes() []string { return s.notes }

// CPUModule names the CPU backend module ggml chose; "" before the first Open.
func CPUModule() string { return llama.CPUModule() }

// Verbose prints llama.cpp's log to standard error.
func Verbose(on bool) { llama.Verbose(on) }

// Release is the llama.cpp release the engine is built for.
const Release = llama.Release

// Cancel ends a Generate under way. It may be called from any goroutine.
func (s *Session) Cancel() {
	if s.hook != nil {
		s.hook.Abort(true)
	}
}

// ResizeCache changes the expert cache's budget, in MiB, between generations.
// It fails on a resident model.
func (s *Session) ResizeCache(mib int) error {
	if s.stream == nil {
		return errors.New("the model is resident: it has no expert cache to resize")
	}
	if mib < 0 {
		return fmt.Errorf("a cache of %d MiB: want 0 or more", mib)
	}
	s.cfg.CacheMB = mib
	return s.stream.Resize(int64(mib) << 20)
}

// Close frees everything the session holds.
func (s *Session) Close() error {
	err := s.drop()
	*s = Session{cfg: s.cfg}
	return err
}

// drop frees what openStream or openResident made.
func (s *Session) drop() error {
	var errs []error
	s.device.unwatch()
	s.placed.watch(nil)
	if s.ctx != nil {
		s.ctx.Close()
	}
	if s.hook != nil {
		s.hook.Close()
	}
	if s.model != nil {
		s.model.Close()
	}
	if s.stream != nil {
		errs = append(errs, s.stream.Close())
	}
	if s.files != nil {
		errs = append(errs, s.files.Close())
	}
	if s.dense != nil {
		errs = append(errs, s.dense.close())
	}
	s.repack.close()
	errs = append(errs, s.tap.close())
	s.ctx, s.hook, s.model, s.stream, s.files, s.dense, s.repack, s.tap, s.device = nil, nil, nil, nil, nil, nil, nil, nil, nil
	s.past, s.pending = nil, nil
	return errors.Join(errs...)
}
