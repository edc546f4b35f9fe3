// Package model exposes the layout of a model file to the probes and commands
// without linking the engine: nothing here loads a model.
package model

import "github.com/bmoe/bmoe/engine/internal/gguf"

type (
	// Model is the layout of a model file.
	Model = gguf.Model
	// Tensor is one tensor of it.
	Tensor = gguf.Tensor
	// ExpertTensor is a routed-expert weight tensor of it.
	ExpertTensor = gguf.ExpertTensor
)

type (
	// MissingShardError is the error of Open for a split model of which one
	// file is not there.
	MissingShardError = gguf.MissingShardError
	// TensorError is the error of Open for a tensor that cannot be right.
	TensorError = gguf.TensorError
	// FileError is the error of Open for another fault, naming the file.
	FileError = gguf.FileError
)

// ErrNotGGUF and ErrTruncated are wrapped by the errors of Open.
var (
	ErrNotGGUF   = gguf.ErrNotGGUF
	ErrTruncated = gguf.ErrTruncated
)

// Open reads the layout of the model at path; of a split model path may be any
// shard. A dense model is no error: it has no ExpertTensors.
func Open(path string) (*Model, error) { return gguf.Open(path) }
