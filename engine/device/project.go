package device

import (
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
	Nodes  int     `json:"nodes,omitempty"` // computing nodes of a one-token graph; 0 unknown
}

// Project asks llama.cpp what a context of the configuration would hold at
// each graph width, with wide matmuls offloaded to a device unless its name is
// empty. It reads metadata and allocates nothing.
func Project(shards []string, c config.Config, widths []int64, offload string) (*Projection, error) {
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
		if out.Nodes == 0 {
			if n, err := p.Nodes(params); err == nil {
				out.Nodes = n
			}
		}
	}
	return out, nil
}
