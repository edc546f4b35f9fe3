package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	parser "github.com/gpustack/gguf-parser-go"
)

// The library trusts some counts of the header: it allocates for them before
// reading, and follows nested arrays by recursion, which no recover() survives.
// So a first walk over the header, which allocates nothing, bounds them.
const (
	maxKeys      = 1 << 16
	maxTensors   = 1 << 20
	maxName      = 1 << 12
	maxString    = 1 << 26
	maxArray     = 1 << 24
	maxKeptArray = 1 << 16 // arrays the library keeps, one boxed value each
	maxDims      = 4

	maxExpertsUsed = 1 << 20
)

// GGUF value types whose size is not in valueSize.
const (
	kvString = 8
	kvArray  = 9
)

// valueSize is the size in bytes of each scalar value type.
var valueSize = map[uint32]int64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

// preface is what the first walk learns besides that the header is sane.
type preface struct {
	splitNo int // -1 if the key is absent; the library drops it
	used    int // the largest item of an array of experts used by layer, which it skips
}

// vetter walks a header.
type vetter struct {
	r    *bufio.Reader
	left int64 // bytes of the file not yet walked
	err  error
}

// vet checks that the counts of the header fit the file and our limits.
func vet(r io.Reader, size int64) (preface, error) {
	v := &vetter{r: bufio.NewReaderSize(r, 1<<16), left: size}
	p := preface{splitNo: -1}
	magic := v.u32()
	if v.err != nil || magic != 0x46554747 {
		return p, ErrNotGGUF
	}
	version := v.u32()
	if v.err == nil && (version < 2 || version > 3) {
		return p, fmt.Errorf("%w this program can read: version %d, it reads 2 and 3 in little-endian order", ErrNotGGUF, version)
	}
	tensors, keys := v.u64(), v.u64()
	if v.err == nil && (tensors > maxTensors || keys > maxKeys) {
		return p, fmt.Errorf("header claims %d tensors and %d keys; at most %d and %d are read", tensors, keys, maxTensors, maxKeys)
	}
	for i := uint64(0); i < keys && v.err == nil; i++ {
		v.key(&p)
	}
	for i := uint64(0); i < tensors && v.err == nil; i++ {
		v.tensor()
	}
	if errors.Is(v.err, io.EOF) || errors.Is(v.err, io.ErrUnexpectedEOF) {
		return p, fmt.Errorf("%w: it ends inside its header after %d bytes", ErrTruncated, size)
	}
	return p, v.err
}

// key walks one key and its value.
func (v *vetter) key(p *preface) {
	name := v.text(maxName)
	kind := v.u32()
	switch {
	case v.err != nil:
	case kind == kvString:
		v.skip(v.length("value of "+name, maxString))
	case kind == kvArray:
		v.array(name, p)
	case valueSize[kind] == 0:
		v.fail("key %q has the unknown value type %d", name, kind)
	case name == "split.no" || name == "split.tensors.count":
		n := v.uint(valueSize[kind])
		if n > maxTensors {
			v.fail("key %q is %d, more than %d", name, n, maxTensors)
		}
		if name == "split.no" {
			p.splitNo = int(n)
		}
	default:
		v.skip(valueSize[kind])
	}
}

// array walks an array value.
func (v *vetter) array(name string, p *preface) {
	kind := v.u32()
	limit := int64(maxArray)
	if keptArray(name) {
		limit = maxKeptArray
	}
	n := v.length("array "+name, limit)
	switch {
	case v.err != nil:
	case kind == kvString:
		for i := int64(0); i < n && v.err == nil; i++ {
			v.skip(v.length("item of "+name, maxString))
		}
	case valueSize[kind] == 0:
		v.fail("array %q has items of type %d, which is not read", name, kind)
	case strings.HasSuffix(name, ".expert_used_count") && n <= maxKeptArray:
		for i := int64(0); i < n && v.err == nil; i++ {
			p.used = max(p.used, int(min(v.uint(valueSize[kind]), maxExpertsUsed)))
		}
	default:
		v.skip(n * valueSize[kind])
	}
}

// tensor walks one tensor description.
func (v *vetter) tensor() {
	name := v.text(maxName)
	dims := v.u32()
	if v.err == nil && (dims == 0 || dims > maxDims) {
		v.fail("tensor %q has %d dimensions; 1 to %d are possible", name, dims, maxDims)
	}
	v.skip(int64(dims) * 8)
	kind := parser.GGMLType(v.u32())
	if trait, ok := kind.Trait(); v.err == nil && (!ok || trait.BlockSize == 0) {
		v.err = &TensorError{Tensor: name, Err: fmt.Errorf("unknown type %d", uint32(kind))}
	}
	v.skip(8)
}

// keptArray says whether the library keeps the array's items.
func keptArray(key string) bool {
	for _, s := range []string{".feed_forward_length", ".attention.head_count", ".attention.head_count_kv", ".attention.sliding_window_pattern"} {
		if strings.HasSuffix(key, s) {
			return true
		}
	}
	return false
}

func (v *vetter) fail(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

// length reads a count and checks it against a limit and the file.
func (v *vetter) length(what string, limit int64) int64 {
	n := v.u64()
	switch {
	case v.err != nil:
		return 0
	case n > uint64(limit) && n <= uint64(v.left):
		v.fail("%s has length %d; at most %d is read", what, n, limit)
	case n > uint64(v.left):
		v.err = io.ErrUnexpectedEOF
	}
	return int64(n)
}

// text reads a string of at most limit bytes.
func (v *vetter) text(limit int64) string {
	n := v.length("name", limit)
	if v.err != nil {
		return ""
	}
	b := make([]byte, n)
	_, v.err = io.ReadFull(v.r, b)
	v.left -= n
	return string(b)
}

func (v *vetter) skip(n int64) {
	if v.err != nil {
		return
	}
	if n > v.left {
		v.err = io.ErrUnexpectedEOF
		return
	}
	var m int
	m, v.err = v.r.Discard(int(n))
	v.left -= int64(m)
}

func (v *vetter) uint(bytes int64) uint64 {
	if v.err != nil {
		return 0
	}
	var b [8]byte
	_, v.err = io.ReadFull(v.r, b[:bytes])
	v.left -= bytes
	return binary.LittleEndian.Uint64(b[:])
}

func (v *vetter) u32() uint32 { return uint32(v.uint(4)) }
func (v *vetter) u64() uint64 { return v.uint(8) }
