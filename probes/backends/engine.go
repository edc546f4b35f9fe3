package backends

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
)

// Engine implements [probes.Engine] with a child per device. The host's child
// is asked once and answers for backends, bandwidth and buffers.
type Engine struct {
	// Child starts this program again; nil measures in this process.
	Child probes.Child
	// Greet bounds how long an RPC server may take to say that it is one; 0: as
	// long as a run waits.
	Greet time.Duration

	host  *answer
	err   error
	asked bool
	cost  float64
	at    string
}

// New returns an engine for one probe.
func New(child probes.Child) *Engine { return &Engine{Child: child} }

// askHost asks the CPU backend once.
func (e *Engine) askHost(ctx context.Context, m *model.Model, cfg config.Config) (*answer, error) {
	if !e.asked {
		start := time.Now()
		e.host, e.err = e.ask(ctx, m, cfg, Host, "")
		e.asked, e.cost, e.at = true, time.Since(start).Seconds(), start.UTC().Format(time.RFC3339)
	}
	return e.host, e.err
}

// ask has a child measure one device; rpc is the server it is on, if any.
func (e *Engine) ask(ctx context.Context, m *model.Model, cfg config.Config, name, rpc string) (*answer, error) {
	if e.Child == nil {
		cfg.RPC = rpc
		return ask(ctx, m, cfg, name)
	}
	out, err := e.Child(ctx, args(cfg, name, rpc))
	if err != nil {
		return nil, err
	}
	var a answer
	if err := json.Unmarshal(out, &a); err != nil || (a.Report == nil && a.Placement == nil) {
		return nil, fmt.Errorf("its probe answered with something else: %.60q", out)
	}
	return &a, nil
}

const (
	owedHost    = "`bmoe probe --device CPU -m MODEL`, which says why"
	owedBuffers = "a projection by llama.cpp of this model's context"
)

// Backends says what this build carries, whether or not a device was found.
func (e *Engine) Backends(ctx context.Context, m *model.Model, cfg config.Config) planner.BackendFacts {
	a, err := e.askHost(ctx, m, cfg)
	if err != nil {
		return planner.BackendFacts{
			Looked: planner.UnknownFact[bool](err.Error(), owedHost),
			Linked: planner.UnknownFact[int64](err.Error(), owedHost),
			Loaded: planner.UnknownFact[int64](err.Error(), owedHost),
		}
	}
	r := a.Report
	linked, loaded := accelerators(r.Linked), accelerators(r.Loaded)
	return planner.BackendFacts{
		Looked: planner.MeasuredFact(true, 0, fmt.Sprintf("llama.cpp's registered devices were listed: %d, the processor among them", len(r.Devices))).Timed(0, e.at),
		Linked: planner.MeasuredFact(int64(len(linked)), 0, "accelerator backends that are part of this build"+named(linked)).Timed(0, e.at),
		Loaded: planner.MeasuredFact(int64(len(loaded)), 0, "accelerator modules beside the program"+named(loaded)).Timed(0, e.at),
	}
}

// accelerators are the backends that are not the processor's, nor the client
// of RPC servers, which has devices only where a run names them.
func accelerators(backends []string) []string {
	return slices.DeleteFunc(slices.Clone(backends), func(b string) bool { return b == Host || strings.HasPrefix(b, device.RPC) })
}

func named(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}

// Bandwidth fills in the host's rates, which types the CPU has another layout
// for, and what the graph's nodes and repacking cost.
func (e *Engine) Bandwidth(ctx context.Context, m *model.Model, cfg config.Config, p *planner.Profile) {
	a, err := e.askHost(ctx, m, cfg)
	if err != nil {
		p.Host = probes.UnknownHost(err.Error(), owedHost)
		return
	}
	p.Host = hostFacts(a.Report, m, cfg, e.at)
	p.Host.Narrow.CostS = e.cost
	markRepackable(p, m, a.Report)
	overheads(p, a, e.at)
}

// Buffers is llama.cpp's projection at the context and cache types of cfg.
func (e *Engine) Buffers(ctx context.Context, m *model.Model, cfg config.Config) planner.BufferFacts {
	a, err := e.askHost(ctx, m, cfg)
	if err == nil && a.Projection == nil {
		err = errors.New(a.ProjectErr)
	}
	if err != nil {
		return planner.BufferFacts{
			Context: planner.UnknownFact[int64](err.Error(), owedBuffers),
			Compute: planner.UnknownFact[[]planner.WidthPoint](err.Error(), owedBuffers),
		}
	}
	contextBytes, compute := projected(a.Projection, "")
	how := fmt.Sprintf("llama.cpp's projection for %d tokens of %s keys and %s values", cfg.CtxSize, cfg.CacheTypeK, cfg.CacheTypeV)
	return planner.BufferFacts{
		Context: planner.MeasuredFact(contextBytes, 0, how).Timed(0, e.at),
		Compute: planner.MeasuredFact(compute, 0, how+", by graph width").Timed(0, e.at),
	}
}

// projected picks one device's rows of a projection; "" is the host.
func projected(p *device.Projection, name string) (contextBytes int64, compute []planner.WidthPoint) {
	for _, w := range p.Widths {
		for _, r := range w.Rows {
			if r.Device == name {
				contextBytes = max(contextBytes, r.Context)
				compute = append(compute, planner.WidthPoint{Width: w.Tokens, Bytes: r.Compute})
			}
		}
	}
	return contextBytes, compute
}
