package engine

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"

	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/stream"
	"github.com/bmoe/bmoe/planner/config"
)

var projections = map[string]int{"gate": stream.Gate, "up": stream.Up, "down": stream.Down, "gate_up": stream.GateUp}

// binder points llama.cpp's expert tensors where the stream wants them.
type binder map[[2]int]llama.Tensor

func (b binder) Bind(layer, proj int, data uintptr, n int, stride int64) {
	b[[2]int{layer, proj}].BindExperts(data, n, stride)
}

// openStream loads the model with its experts unread and its other weights
// placed by policy, and puts a stream behind the experts.
func (s *Session) openStream() (err error) {
	if len(s.layout.ExpertTensors) == 0 {
		return fmt.Errorf("%s: %w; run it with --no-moe-stream", s.cfg.Model, ErrDense)
	}
	if s.cfg.Repack == "auto" {
		s.cfg.Repack = "off" // only a plan has the figures that would justify it
	}
	s.repack = newRepacker(s.cfg.Repack)
	host, err := s.placed.hostExperts(s.layout)
	if err != nil {
		return err
	}
	if len(host) == 0 {
		return errors.New("--gpu-layers puts every layer's experts on devices: nothing is left to stream; add --no-moe-stream")
	}
	p := s.modelParams()
	p.Stream, p.Dense = true, s.placed.densePatterns(s.layout)
	s.placed.params(&p, s.cfg.GPULayers)
	if s.device != nil {
		p.Devices = []llama.Device{s.device.dev}
	}
	for _, t := range host {
		p.Experts = append(p.Experts, "^"+regexp.QuoteMeta(t.Name)+"$")
	}
	if s.model, err = llama.Load(s.layout.Shards, p); err != nil {
		return err
	}
	bound, err := s.placeWeights(host)
	if err != nil {
		return err
	}
	tensors, err := s.expertTensors(host)
	if err != nil {
		return err
	}
	if err := s.startStream(tensors, bound); err != nil {
		return err
	}
	return s.openContext()
}

// expertTensors turns the file's expert tensors into the stream's, refusing by
// name what the router hook cannot serve.
func (s *Session) expertTensors(host []*gguf.ExpertTensor) ([]stream.Tensor, error) {
	m := s.layout
	var out []stream.Tensor
	for _, t := range host {
		proj, ok := projections[t.Projection]
		if !ok {
			return nil, fmt.Errorf("%s: tensor %s: expert projection %q cannot be streamed; run it with --no-moe-stream", m.Path, t.Name, t.Projection)
		}
		st := stream.Tensor{Layer: t.Layer, Proj: proj, Shard: t.Shard, Offset: t.Offset, Slice: t.SliceBytes}
		if layout := s.repack.of(&t.Tensor); layout != nil {
			st.Repack = layout.Run
		}
		out = append(out, st)
	}
	return out, nil
}

// placeWeights gives every tensor llama.cpp made its bytes: experts later,
// the rest now, devices' from the file. It returns the expert tensors by layer
// and projection.
func (s *Session) placeWeights(host []*gguf.ExpertTensor) (binder, error) {
	experts := map[string]*gguf.ExpertTensor{}
	for _, e := range host {
		experts[e.Name] = e
	}
	bound := binder{}
	var rest []llama.Tensor
	for _, t := range s.model.Tensors() {
		e, ok := experts[t.Name()]
		if !ok && !t.OnHost() {
			if err := s.upload(t); err != nil {
				return nil, err
			}
			continue
		}
		if !ok {
			rest = append(rest, t)
			continue
		}
		if t.Bytes() != e.Bytes {
			return nil, fmt.Errorf("%s: tensor %s holds %d bytes, the model's parameters ask for %d", s.cfg.Model, e.Name, e.Bytes, t.Bytes())
		}
		if layout := s.repack.of(&e.Tensor); layout != nil {
			layout.Mark(t)
		}
		bound[[2]int{e.Layer, projections[e.Projection]}] = t
	}
	if len(bound) != len(experts) {
		return nil, fmt.Errorf("%s: llama.cpp uses %d of the %d expert tensors in the file", s.cfg.Model, len(bound), len(experts))
	}
	var err error
	s.dense, err = placeDense(s.layout, rest, s.cfg.DenseWeights, s.cfg.ReleaseMmap, s.repack)
	return bound, err
}

func (s *Session) startStream(tensors []stream.Tensor, bound binder) (err error) {
	c := &s.cfg
	if s.files, err = stream.OpenFiles(s.layout.Shards, c.IOThreads, c.ODirect); err != nil {
		return err
	}
	if c.ODirect && !s.files.Direct() {
		s.notes = append(s.notes, s.files.Fallback)
		c.ODirect = false
	}
	if c.CacheMB == config.Auto {
		// Without a plan: a quarter of the experts, but no less than a token.
		var routed int64
		for i := range tensors {
			routed += tensors[i].Slice * int64(s.layout.Experts)
		}
		quarter := max(routed/4, s.layout.TokenCycle(s.used()))
		c.CacheMB = int((quarter + 1<<20 - 1) >> 20)
	}
	// A callback needs a processor of the scheduler's while lanes sit in reads.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), runtime.NumCPU()+c.IOThreads))
	s.stream, err = stream.New(stream.Config{
		Layers: s.layout.Layers, Experts: s.layout.Experts, Used: s.used(), Tensors: tensors,
		BudgetBytes: int64(c.CacheMB) << 20, Policy: c.CachePolicy, Lanes: c.IOThreads, Overlap: c.Overlap,
		PrefillSlots: c.PrefillSlots, PrefillOnDemand: c.SlotsOnDemand, Device: s.device != nil, Pin: c.CachePin, PinFit: c.CachePinFit,
	}, s.files, bound)
	if err != nil {
		return err
	}
	s.hook = llama.NewHook(s.stream, s.layout.Layers, s.used(), c.UBatchSize)
	for key, t := range bound {
		s.hook.Expert(t, key[0], key[1])
	}
	if h := &s.dense.head; h.layout != nil {
		s.hook.Head(h.embd, h.layout, h.data)
	}
	s.hook.Seal()
	s.hook.Table(s.stream.Slots(), s.layout.Experts)
	if c.ExpertPrefetch && c.Overlap { // without it every read is waited for at once
		s.hook.Routers(s.model.Tensors())
	}
	s.device.watch(func() { s.Cancel() })
	s.placed.watch(func() { s.Cancel() })
	if c.RouteTrace != "" {
		if s.tap, err = openTap(c.RouteTrace, s.layout); err != nil {
			return err
		}
	}
	s.log = newRouteLog(s.layout)
	s.stream.Trace(func(layer int, ids []int32, used, tokens int, resident func(int32) bool) {
		s.log.record(layer, ids, used, tokens)
		s.tap.record(layer, ids, used, resident)
	})
	return nil
}
