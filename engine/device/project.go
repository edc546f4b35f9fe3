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
		if err := offloadTo(offload, c.PrefillMinTokens); err != nil {
			return nil, err
		}
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

// offloadTo has the device take matmuls that are wide enough, as a session
// with it would.
func offloadTo(name string, least int) error {
	d, err := llama.FindDevice(name)
	if err != nil {
		return err
	}
	return d.Offload(true, max(least, 2))
}
