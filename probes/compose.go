package probes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

// Options say how far a probe may go.
type Options struct {
	// NoIO keeps it from reading the drive.
	NoIO bool
	// Mem lets it hold memory until some is taken back.
	Mem bool
	// Progress is told what is being probed, if set.
	Progress func(step string)
	// Engine measures what needs llama.cpp: backends, rates, buffers. Without
	// one those facts are unknown.
	Engine Engine
	// Learn adds what earlier runs taught (hit curves, overheads, refusals), if
	// set. An error of it is noted and costs only those facts.
	Learn func(context.Context, *model.Model, *planner.Profile) error
	// Policy replaces the planner's default numbers, if set.
	Policy *planner.Policy
	// Host is where the machine is read; nil is this machine.
	Host *Host
	// Hold starts the child process that holds memory for Mem.
	Hold Child
}

// Engine is what llama.cpp is asked for a profile. Every method returns facts,
// unknown ones with their reason included; none may end the process.
type Engine interface {
	// Backends says what this build can see.
	Backends(context.Context, *model.Model, config.Config) planner.BackendFacts
	// Devices probes each accelerator in a process of its own, before this
	// process uses any.
	Devices(context.Context, *model.Model, config.Config) []planner.Device
	// Bandwidth fills in the host's rates on the model's own expert type, which
	// of the model's types it has another layout for, and what nodes and
	// repacking cost.
	Bandwidth(context.Context, *model.Model, config.Config, *planner.Profile)
	// Buffers projects context and compute buffers at two widths.
	Buffers(context.Context, *model.Model, config.Config) planner.BufferFacts
	// Placement asks llama.cpp's capacity fitter.
	Placement(context.Context, *model.Model, config.Config, []planner.Device) planner.PlacementFacts
}

// composition is the state the steps share.
type composition struct {
	host    *Host
	opts    Options
	cfg     config.Config
	model   *model.Model
	profile planner.Profile
}

// step is one probe of the sequence.
type step struct {
	name string
	run  func(*composition, context.Context)
}

// steps is the sequence. Its order is part of the measurement: backends are
// registered before anything asks about a device; each device is asked in its
// own process before this one uses any; rates are taken before the drive is
// read, which leaves the processors warm and the memory bus busy; and holding
// memory comes last because it leaves the kernel reclaiming.
var steps = []step{
	{"model", (*composition).probeModel},
	{"memory", (*composition).probeMemory},
	{"cores", (*composition).probeCores},
	{"locks", (*composition).probeLocks},
	{"backends", (*composition).probeBackends},
	{"devices", (*composition).probeDevices},
	{"bandwidth", (*composition).probeBandwidth},
	{"buffers", (*composition).probeBuffers},
	{"placement", (*composition).probePlacement},
	{"storage", (*composition).probeStorage},
	{"headroom", (*composition).probeHeadroom},
	{"learned", (*composition).learn},
}

// ErrModel is in the chain of an error that lies in the file of -m.
var ErrModel = errors.New("-m")

// Probe runs the sequence and returns the facts. The error is a model that
// cannot be read, or the caller's cancellation; everything else that goes
// wrong is an unknown fact with its reason.
func Probe(ctx context.Context, cfg config.Config, opts Options) (planner.Profile, error) {
	if cfg.Model == "" {
		return planner.Profile{}, errors.New("no model was named; type -m FILE")
	}
	m, err := model.Open(cfg.Model)
	if err != nil {
		return planner.Profile{}, fmt.Errorf("%w: %w", ErrModel, err)
	}
	c := &composition{host: opts.Host, opts: opts, cfg: cfg, model: m}
	if c.host == nil {
		c.host = Local()
	}
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return c.profile, err
		}
		if opts.Progress != nil {
			opts.Progress(s.name)
		}
		s.run(c, ctx)
	}
	return c.profile, ctx.Err()
}

// ProbeAndPlan is the one sequence behind every command that plans: it probes
// the model and the machine and lets the planner decide. Pinned knobs keep
// their values; cfg carries them.
func ProbeAndPlan(ctx context.Context, cfg config.Config, pins planner.Pins, opts Options) (planner.Profile, planner.Plan, error) {
	profile, err := Probe(ctx, cfg, opts)
	if err != nil {
		return profile, planner.Plan{}, err
	}
	policy := planner.DefaultPolicy()
	if opts.Policy != nil {
		policy = *opts.Policy
	}
	plan, err := planner.Make(profile, cfg, pins, policy)
	return profile, plan, err
}

func (c *composition) probeModel(context.Context)  { c.profile.Model = c.host.ModelFacts(c.model) }
func (c *composition) probeMemory(context.Context) { c.profile.Memory = c.host.Memory() }
func (c *composition) probeCores(context.Context)  { c.profile.Cores = c.host.Cores() }

func (c *composition) probeLocks(context.Context) {
	c.profile.Locks = c.host.Locks(c.profile.Memory.Holdable)
}

func (c *composition) probeStorage(ctx context.Context) {
	if c.opts.NoIO {
		c.profile.Storage = unknownStorage("reading the drive was turned off", "the same probe without --no-probe-io")
		return
	}
	budget, ok := c.profile.Memory.Holdable.Get()
	if !ok {
		budget = blindBudget
	}
	c.profile.Storage = c.host.Storage(ctx, storageTarget(c.model), min(mostBuffers, budget/8))
}

const (
	mostBuffers = 128 << 20 // bytes of buffers a storage probe holds at most
	blindBudget = 256 << 20 // what is assumed to be there when nobody can tell
)

// timed runs f and returns how long it took, seconds, and when it began.
func (h *Host) timed(f func()) (cost float64, at string) {
	start := h.Now()
	f()
	return h.since(start), start.UTC().Format(time.RFC3339)
}
