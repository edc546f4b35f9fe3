package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	parser "github.com/gpustack/gguf-parser-go"
)

func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// place sorts every tensor of the shards into experts, dense and unused.
func (m *Model) place(shards []*shard) error {
	seen := map[string]int{}
	for i, s := range shards {
		for _, ti := range s.file.TensorInfos {
			t, slice, err := locate(s, ti)
			if err != nil {
				return &TensorError{s.path, ti.Name, err}
			}
			if other, dup := seen[t.Name]; dup {
				return &TensorError{s.path, t.Name, fmt.Errorf("it is also in %s", shards[other].path)}
			}
			seen[t.Name] = i
			t.Shard = i
			m.sort(t, slice)
		}
	}
	slices.SortStableFunc(m.ExpertTensors, func(a, b ExpertTensor) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(rank(a.Projection), rank(b.Projection)), cmp.Compare(a.Projection, b.Projection))
	})
	return nil
}

// locate checks one tensor's type, shape and place. slice is the size of one
// of its matrices.
func locate(s *shard, ti parser.GGUFTensorInfo) (t Tensor, slice int64, err error) {
	trait, ok := ti.Type.Trait()
	if !ok || trait.BlockSize == 0 {
		return t, 0, fmt.Errorf("unknown type %d", uint32(ti.Type))
	}
	t = Tensor{Name: ti.Name, Type: uint32(ti.Type), Quant: ti.Type.String()}
	for _, d := range ti.Dimensions {
		if d == 0 || d > math.MaxInt64 {
			return t, 0, fmt.Errorf("dimension %d is not possible", d)
		}
		t.Dims = append(t.Dims, int64(d))
	}
	if ti.Dimensions[0]%trait.BlockSize != 0 {
		return t, 0, fmt.Errorf("rows of %d values are no whole number of %s blocks of %d", ti.Dimensions[0], t.Quant, trait.BlockSize)
	}
	size := ti.Dimensions[0] / trait.BlockSize
	for i, factor := range append([]uint64{trait.TypeSize}, ti.Dimensions[1:]...) {
		hi, lo := bits.Mul64(size, factor)
		if hi != 0 || lo > math.MaxInt64 {
			return t, 0, errors.New("size overflows")
		}
		if size = lo; i <= 1 {
			slice = int64(size)
		}
	}
	t.Bytes = int64(size)
	start := s.file.TensorDataStartOffset
	if start > s.size || ti.Offset > uint64(s.size-start) || t.Bytes > s.size-start-int64(ti.Offset) {
		return t, 0, fmt.Errorf("%w: it needs %d bytes at %d, the file has %d", ErrTruncated, t.Bytes, uint64(start)+ti.Offset, s.size)
	}
	t.Offset = start + int64(ti.Offset)
	return t, slice, nil
}

var blockName = regexp.MustCompile(`^blk\.(\d{1,6})\.(.+)$`)

// sort files one tensor under experts, dense or unused.
func (m *Model) sort(t Tensor, slice int64) {
	layer, rest := -1, ""
	if b := blockName.FindStringSubmatch(t.Name); b != nil {
		layer, _ = strconv.Atoi(b[1])
		rest = b[2]
	}
	if layer >= m.Layers-m.MTPLayers {
		m.Unused = append(m.Unused, t)
		return
	}
	base, weight := strings.CutSuffix(rest, ".weight")
	proj, exps := strings.CutSuffix(base, "_exps")
	if layer < 0 || !weight || !exps || m.Experts == 0 || len(t.Dims) != 3 || t.Dims[2] != int64(m.Experts) {
		m.Dense = append(m.Dense, t)
		return
	}
	m.ExpertTensors = append(m.ExpertTensors, ExpertTensor{
		Tensor: t, Layer: layer, Projection: strings.TrimPrefix(proj, "ffn_"),
		Experts: m.Experts, SliceBytes: slice,
	})
}

// rank is the order in which the graph executes the projections: gate before
// up, although up is built first.
func rank(projection string) int {
	switch projection {
	case "gate", "gate_up":
		return 0
	case "up":
		return 1
	case "down":
		return 2
	}
	return 3
}

// byPosition is every tensor, in the order of the files.
func (m *Model) byPosition() []Tensor {
	all := slices.Concat(m.Dense, m.Unused)
	for i := range m.ExpertTensors {
		all = append(all, m.ExpertTensors[i].Tensor)
	}
	slices.SortFunc(all, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Name, b.Name))
	})
	return all
}
