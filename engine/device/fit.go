package device

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/rpcdev"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner/config"
)

// Share is what a fitted placement puts on one device, bytes.
type Share struct {
	Device  string `json:"device"`
	Layers  int    `json:"layers"` // the output counts as one
	Model   int64  `json:"model"`
	Context int64  `json:"context"`
	Compute int64  `json:"compute"`
	Free    int64  `json:"free"`
	Total   int64  `json:"total"`
}

// Bytes is all that the placement holds there.
func (s *Share) Bytes() int64 { return s.Model + s.Context + s.Compute }

// Placement is the capacity fitter's answer, made fit for streaming. Sizes are
// those of the placement as it is given here, which may hold less on devices
// than the fitter's own.
type Placement struct {
	GPULayers   int     `json:"gpu_layers"`
	Width       int     `json:"width"` // tokens of the widest graph it has room for
	Shares      []Share `json:"shares"`
	Overrides   string  `json:"overrides,omitempty"` // as --override-tensor takes it
	HostExperts int64   `json:"host_experts"`        // bytes of routed experts left on the host
	HostDense   int64   `json:"host_dense"`          // of other weights, by the model's own facts
	HostContext int64   `json:"host_context"`
	HostCompute int64   `json:"host_compute"`
	SplitFFN    bool    `json:"split_ffn"` // a layer's experts were divided, and all brought to the host
}

// Split is each device's count of layers, as --device-split takes it.
func (p *Placement) Split() string {
	var parts []string
	for i := range p.Shares {
		parts = append(parts, fmt.Sprintf("%s=%d", p.Shares[i].Device, p.Shares[i].Layers))
	}
	return strings.Join(parts, ",")
}

// fitMargin is what is left free of a device: llama.cpp's own gibibyte, less on
// a device on which that would be much.
func fitMargin(free int64) int64 { return min(1<<30, free/8) }

// streamWidth is the width that a placement has room for when experts are left
// to stream: each pass of a prompt reads them again, and few prompts are
// longer. A still wider graph would take the room of layers.
const streamWidth = 2048

// Place asks llama.cpp's capacity fitter where the layers of a model fit, on
// the named devices; with none named, on all that the configuration gives.
func Place(ctx context.Context, m *model.Model, c config.Config, names []string) (*Placement, error) {
	devs, known, err := choose(ctx, c, names)
	if err != nil {
		return nil, err
	}
	margins := make([]int64, len(devs))
	for i, d := range devs {
		info, err := d.Info()
		if err != nil {
			return nil, err
		}
		margins[i] = fitMargin(info.Free)
	}
	f := &fitting{m, c, devs, known, margins}
	p, err := f.at(min(c.UBatch(), c.CtxSize))
	if err != nil || c.UBatchSize > 0 || p.HostExperts == 0 || c.CtxSize <= p.Width {
		return p, err
	}
	return f.at(min(streamWidth, c.CtxSize))
}

// fitting is what stays the same from width to width.
type fitting struct {
	m       *model.Model
	c       config.Config
	devs    []llama.Device
	known   []string
	margins []int64
}

// at fits the model with graphs of that many tokens.
func (x *fitting) at(width int) (*Placement, error) {
	c := &x.c
	params := llama.ContextParams{
		Ctx: c.CtxSize, Batch: max(c.BatchSize, width), UBatch: width,
		FlashAttn: c.FlashAttn, TypeK: c.CacheTypeK, TypeV: c.CacheTypeV,
	}
	f, err := llama.Fit(x.m.Shards[0], x.m.Layers, params, x.devs, x.margins)
	if err != nil {
		return nil, err
	}
	p := &Placement{GPULayers: f.GPULayers, Width: width}
	if err := p.settle(x.m, f.Patterns); err != nil {
		return nil, err
	}
	layers := spread(f)
	host, rows, err := llama.Weigh(x.m.Shards[0], params, x.devs, llama.Placing{GPULayers: f.GPULayers, Layers: layers, Host: p.hostPatterns()})
	if err != nil {
		return nil, err
	}
	p.HostContext, p.HostCompute = host.Context, host.Compute
	for i, r := range rows {
		s := Share{x.known[i], layers[i], r.Model, r.Context, r.Compute, f.Free[i], f.Total[i]}
		if s.Bytes() > s.Free {
			return nil, fmt.Errorf("the capacity fitter puts %d MiB on %s, which has %d free", s.Bytes()>>20, s.Device, s.Free>>20)
		}
		p.Shares = append(p.Shares, s)
	}
	return p, nil
}

// spread is each device's count of layers. Where everything fits the fitter
// leaves that to llama.cpp, which divides by what is free on each.
func spread(f *llama.Fitted) []int {
	placed, free := 0, 0.0
	for i := range f.Layers {
		placed += f.Layers[i]
		free += float64(f.Free[i])
	}
	if placed == f.GPULayers || free == 0 {
		return f.Layers
	}
	out := make([]int, len(f.Layers))
	for layer, i, upTo := 0, 0, float64(f.Free[0])/free; layer < f.GPULayers; layer++ {
		for i < len(out)-1 && float64(layer)/float64(f.GPULayers) >= upTo {
			i++
			upTo += float64(f.Free[i]) / free
		}
		out[i]++
	}
	return out
}

// hostPatterns are the overrides without where they send to.
func (p *Placement) hostPatterns() []string {
	var out []string
	for o := range strings.SplitSeq(p.Overrides, ",") {
		if pattern, ok := strings.CutSuffix(o, "=CPU"); ok {
			out = append(out, pattern)
		}
	}
	return out
}

// choose finds the devices to fit to.
func choose(ctx context.Context, c config.Config, names []string) (devs []llama.Device, known []string, err error) {
	wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	n := 0
	for _, s := range rpcdev.Connect(ctx, c.RPC, int64(c.RPCMB)<<20) {
		if s.Err != nil {
			return nil, nil, s.Err
		}
		for _, d := range s.Devices {
			if name := rpcdev.Name(n); wanted(name) {
				devs, known = append(devs, d), append(known, name)
			}
			n++
		}
	}
	infos, err := llama.Devices()
	if err != nil {
		return nil, nil, err
	}
	for _, i := range infos {
		if (i.Kind != GPU && i.Kind != IGPU) || strings.HasPrefix(i.Name, "RPC") || !wanted(i.Name) {
			continue
		}
		d, err := llama.FindDevice(i.Name)
		if err != nil {
			return nil, nil, err
		}
		devs, known = append(devs, d), append(known, i.Name)
	}
	if len(devs) == 0 {
		return nil, nil, errors.New("there is no device to place layers on")
	}
	return devs, known, nil
}

var block = regexp.MustCompile(`^blk\.(\d+)\.`)

// settle turns the fitter's patterns into what a streamed run can load: a layer
// with part of its experts on the host has all of them there.
func (p *Placement) settle(m *model.Model, patterns []string) error {
	var host []*regexp.Regexp
	var overrides []string
	for _, text := range patterns {
		re, err := regexp.Compile(text)
		if err != nil {
			return fmt.Errorf("the capacity fitter's pattern %q: %w", text, err)
		}
		host, overrides = append(host, re), append(overrides, text+"=CPU")
	}
	first := m.Layers + 1 - p.GPULayers
	left := func(layer int, name string) bool {
		return layer < first || slices.ContainsFunc(host, func(re *regexp.Regexp) bool { return re.MatchString(name) })
	}
	kept, all := map[int]int{}, map[int]int{}
	for i := range m.ExpertTensors {
		t := &m.ExpertTensors[i]
		all[t.Layer]++
		if left(t.Layer, t.Name) {
			kept[t.Layer]++
		}
	}
	for layer := range m.Layers {
		if kept[layer] > 0 && kept[layer] < all[layer] {
			p.SplitFFN = true
			overrides = append(overrides, fmt.Sprintf(`blk\.%d\.ffn_(up|down|gate_up|gate)_exps=CPU`, layer))
		}
	}
	p.Overrides = strings.Join(overrides, ",")
	p.count(m, kept, left)
	return nil
}

// count adds up what stays on the host.
func (p *Placement) count(m *model.Model, kept map[int]int, left func(int, string) bool) {
	for i := range m.ExpertTensors {
		if t := &m.ExpertTensors[i]; kept[t.Layer] > 0 {
			p.HostExperts += t.Bytes
		}
	}
	for i := range m.Dense {
		t := &m.Dense[i]
		b := block.FindStringSubmatch(t.Name)
		if b == nil { // the input stays with the host, the output goes
			if strings.HasPrefix(t.Name, "token_embd") || p.GPULayers == 0 {
				p.HostDense += t.Bytes
			}
			continue
		}
		if layer, _ := strconv.Atoi(b[1]); left(layer, t.Name) {
			p.HostDense += t.Bytes
		}
	}
}
