// Package model exposes the layout of a model file to the probes and commands
// without linking the engine: nothing here loads a model.
package model

import "github.com/bmoe/bmoe/engine/internal/gguf"

// Model, Tensor and ExpertTensor describe a file; see the fields.
type (
	Model        = gguf.Model
	Tensor       = gguf.Tensor
	ExpertTensor = gguf.ExpertTensor
)
