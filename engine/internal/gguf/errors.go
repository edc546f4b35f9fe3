package gguf

import (
	"errors"
	"fmt"
)

// ErrNotGGUF is wrapped by the error for a file that is something else.
var ErrNotGGUF = errors.New("not a GGUF file")

// ErrTruncated is wrapped by the error for a file that ends before its tensors do.
var ErrTruncated = errors.New("file is truncated")

// MissingShardError is a split model of which one file is not there.
type MissingShardError struct {
	Path  string // the shard that cannot be opened
	Index int    // counted from 1, as in the file name
	Count int
	Err   error
}

func (e *MissingShardError) Error() string {
	return fmt.Sprintf("%s: shard %d of %d cannot be opened: %v; put every shard in the same folder", e.Path, e.Index, e.Count, e.Err)
}

func (e *MissingShardError) Unwrap() error { return e.Err }

// TensorError is one tensor whose description cannot be right.
type TensorError struct {
	Path   string
	Tensor string
	Err    error
}

func (e *TensorError) Error() string {
	return fmt.Sprintf("%s: tensor %q: %v", e.Path, e.Tensor, e.Err)
}

func (e *TensorError) Unwrap() error { return e.Err }

// FileError is a file that cannot be read as a model for another reason.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }
