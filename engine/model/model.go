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

// The errors of Open that a caller may want to tell apart.
type (
	MissingShardError = gguf.MissingShardError
	TensorError       = gguf.TensorError
	FileError         = gguf.FileError
)

// ErrNotGGUF and ErrTruncated are wrapped by the errors of Open.
var (
	ErrNotGGUF   = gguf.ErrNotGGUF
	ErrTruncated = gguf.ErrTruncated
)

// Open reads the layout of the model at path; of a split model path may be any
// shard. A dense model is no error: it has no ExpertTensors.
func Open(path string) (*Model, error) { return gguf.Open(path) }
