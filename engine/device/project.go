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

// Project asks llama.cpp what a context of the configuration would hold at
// each graph width. It reads metadata and allocates nothing.
func Project(shards []string, c config.Config, widths []int64) ([]Width, error) {
	p, err := llama.NewProjection(shards, c.GPULayers)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	out := make([]Width, len(widths))
	for i, w := range widths {
		rows, err := p.At(llama.ContextParams{
			Ctx: c.CtxSize, Batch: max(c.BatchSize, int(w)), UBatch: int(w),
			FlashAttn: c.FlashAttn, TypeK: c.CacheTypeK, TypeV: c.CacheTypeV,
		})
		if err != nil {
			return nil, err
		}
		out[i] = Width{w, rows}
	}
	return out, nil
}
