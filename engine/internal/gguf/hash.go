package gguf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

const (
	hashTensors = 16      // tensors sampled, evenly spaced in the file order
	hashEnds    = 1 << 16 // bytes sampled at each end of such a tensor
)

// Hash identifies the content of the model, wherever it lies: the header of
// each shard, its size, and the first and last 64 KiB of some sixteen tensors.
// Reading every byte would cost minutes on the models this is for.
func (m *Model) Hash() (string, error) {
	sum := sha256.New()
	all := m.byPosition()
	step := max(1, len(all)/hashTensors)
	for i, path := range m.Shards {
		f, size, err := openRegular(path)
		if err != nil {
			return "", err
		}
		err = m.hashShard(sum, f, i, all, step)
		f.Close()
		if err != nil {
			return "", &FileError{path, plain(err)}
		}
		if size != m.Sizes[i] {
			return "", &FileError{path, fmt.Errorf("size changed from %d to %d bytes since it was opened", m.Sizes[i], size)}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// hashShard adds one shard: its header is all before its first tensor.
func (m *Model) hashShard(sum hash.Hash, f *os.File, shard int, all []Tensor, step int) error {
	header := m.Sizes[shard]
	for _, t := range all {
		if t.Shard == shard {
			header = min(header, t.Offset)
		}
	}
	fmt.Fprintf(sum, "shard %d size %d header %d\n", shard, m.Sizes[shard], header)
	if err := copyRange(sum, f, 0, header); err != nil {
		return err
	}
	for i := 0; i < len(all); i += step {
		t := all[i]
		if t.Shard != shard {
			continue
		}
		n := min(hashEnds, t.Bytes)
		if err := copyRange(sum, f, t.Offset, n); err != nil {
			return err
		}
		if err := copyRange(sum, f, t.Offset+t.Bytes-n, n); err != nil {
			return err
		}
	}
	return nil
}

func copyRange(w io.Writer, f *os.File, off, n int64) error {
	_, err := io.CopyN(w, io.NewSectionReader(f, off, n), n)
	return err
}
