package device

import (
	"context"

	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/planner/config"
)

// Projected is what a context would hold in one device's memory; see the
// fields.
type Projected = llama.Projected

// Width is a projection at one graph width.
type Width struct {
	Tokens int64       `json:"tokens"`
	Rows   []Projected `json:"rows"`
}

// Projection is what llama.cpp projects for a configuration.
type Projection struct {
	Widths []Width `json:"widths"`
	Graph  *Graph  `json:"graph,omitempty"` // of the host; nil where it could not be timed
	Nodes  int     `json:"nodes,omitempty"` // computing nodes of the graph that was not; 0 unknown
}

// Graph is what the model's one-token graph takes without the weights it
// multiplies with.
type Graph struct {
	Nodes   int     `json:"nodes"` // that compute something
	Seconds float64 `json:"seconds"`
	Spread  float64 `json:"spread"`
}

// graphContext bounds the positions of the context under the timed graph.
const graphContext = 512

// timeGraph times that graph on the host; nil where it cannot be had.
func timeGraph(ctx context.Context, p *llama.Projection, params llama.ContextParams, threads int) *Graph {
	params.Ctx, params.Threads = min(params.Ctx, graphContext), threads
	params.Batch, params.UBatch = min(params.Batch, params.Ctx), min(params.UBatch, params.Ctx)
	r, err := p.Replay(params)
	if err != nil {
		return nil
	}
	defer r.Close()
	if _, err := r.Run(); err != nil { // warms up
		return nil
	}
	mid, spread, err := steady(ctx, r)
	if err != nil {
		return nil
	}
	return &Graph{Nodes: r.Nodes, Seconds: mid, Spread: spread}
}

// askGraph times the graph of one token, and counts its nodes where that cannot
// be done.
func (out *Projection) askGraph(ctx context.Context, p *llama.Projection, params llama.ContextParams, threads int) {
	if out.Graph = timeGraph(ctx, p, params, threads); out.Graph != nil {
		return
	}
	if n, err := p.Nodes(params); err == nil {
		out.Nodes = n
	}
}

// Project asks llama.cpp what a context of the configuration would hold at
// each graph width, with wide matmuls offloaded to a device unless its name is
// empty; without a device it also times the graph of one token on so many
// threads. It reads metadata only.
func Project(ctx context.Context, shards []string, c config.Config, widths []int64, offload string, threads int) (*Projection, error) {
	layers := c.GPULayers
	if offload != "" {
		layers = 0 // a device that computes prompts holds no layer
		d, err := llama.FindDevice(offload)
		if err != nil {
			return nil, err
		}
		least := max(c.PrefillMinTokens, 2) // as in a session with it
		if err := d.Offload(true, least); err != nil {
			return nil, err
		}
		defer func() { _ = d.Offload(false, least) }()
	}
	p, err := llama.NewProjection(shards, layers, offload)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	out := &Projection{}
	for _, w := range widths {
		params := llama.ContextParams{
			Ctx: c.CtxSize, Batch: max(c.BatchSize, int(w)), UBatch: int(w),
			FlashAttn: c.FlashAttn, TypeK: c.CacheTypeK, TypeV: c.CacheTypeV,
		}
		rows, err := p.At(params)
		if err != nil {
			return nil, err
		}
		out.Widths = append(out.Widths, Width{w, rows})
		if offload == "" && out.Graph == nil && out.Nodes == 0 {
			out.askGraph(ctx, p, params, threads)
		}
	}
	return out, nil
}
