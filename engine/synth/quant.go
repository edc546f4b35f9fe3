package synth

import (
	"fmt"
	"math"
	"sort"
	"strings"
)

// quant is a tensor type. Random tensors are made by filling memory with
// random bits and then mending in each block what may not be random: scales.
type quant struct {
	name     string
	id       uint32  // ggml type number
	fileType uint32  // general.file_type of a model mostly of this type
	block    int     // values in a block
	bytes    int     // bytes of a block
	spread   float64 // standard deviation of a random block's values at scale 1
	prepare  func(sigma, spread float64) mender
	encode   func(dst []byte, x []float32) // nil: cannot represent given values
	partner  string                        // the type --mixed mixes it with
	// expertsOnly says that models of this type have other weights in 8 bits
	expertsOnly bool
}

// mender turns random bits into valid blocks.
type mender func(blocks []byte)

var quants = map[string]*quant{}

func addQuant(q *quant) { quants[q.name] = q }

func init() {
	addQuant(&quant{name: "f32", id: 0, fileType: 0, block: 1, bytes: 4, spread: 1, prepare: mendF32, encode: encodeF32, partner: "f16"})
	addQuant(&quant{name: "f16", id: 1, fileType: 1, block: 1, bytes: 2, spread: 1, prepare: mendF16, encode: encodeF16, partner: "f32"})
	addQuant(&quant{name: "bf16", id: 30, fileType: 32, block: 1, bytes: 2, spread: 1, prepare: mendBF16, partner: "f16"})
	addQuant(&quant{name: "q4_0", id: 2, fileType: 2, block: 32, bytes: 18, spread: spread4, prepare: mendQ4_0, encode: encodeQ4_0, partner: "q8_0"})
	addQuant(&quant{name: "q4_1", id: 3, fileType: 3, block: 32, bytes: 20, spread: spread4, prepare: mendPair(20, 0, 7.5, nil), partner: "q8_0"})
	addQuant(&quant{name: "q5_0", id: 6, fileType: 8, block: 32, bytes: 22, spread: spread5, prepare: mendScale(22, 0), partner: "q8_0"})
	addQuant(&quant{name: "q5_1", id: 7, fileType: 9, block: 32, bytes: 24, spread: spread5, prepare: mendPair(24, 0, 15.5, nil), partner: "q8_0"})
	addQuant(&quant{name: "q8_0", id: 8, fileType: 7, block: 32, bytes: 34, spread: 73.9, prepare: mendQ8_0, encode: encodeQ8_0, partner: "f16"})
	addQuant(&quant{name: "q2_k", id: 10, fileType: 10, block: 256, bytes: 84, spread: spread2 * 11.73, prepare: mendQ2K, partner: "q4_k"})
	addQuant(&quant{name: "q3_k", id: 11, fileType: 12, block: 256, bytes: 110, spread: 2.345 * 18.48, prepare: mendScale(110, 108), partner: "q5_k"})
	addQuant(&quant{name: "q4_k", id: 12, fileType: 15, block: 256, bytes: 144, spread: spread4 * 48.39, prepare: mendPair(144, 0, 7.5, scales6), partner: "q6_k"})
	addQuant(&quant{name: "q5_k", id: 13, fileType: 17, block: 256, bytes: 176, spread: spread5 * 48.39, prepare: mendPair(176, 0, 15.5, scales6), partner: "q6_k"})
	addQuant(&quant{name: "q6_k", id: 14, fileType: 18, block: 256, bytes: 210, spread: 18.48 * 66.14, prepare: mendQ6K, partner: "q8_0"})
	addQuant(&quant{name: "iq4_nl", id: 20, fileType: 25, block: 32, bytes: 18, spread: 67.44, prepare: mendScale(18, 0), partner: "q8_0"})
	addQuant(&quant{name: "mxfp4", id: 39, fileType: 38, block: 32, bytes: 17, spread: 5.852, prepare: mendMXFP4, partner: "q8_0", expertsOnly: true})
}

// Standard deviations of uniform whole numbers of 2, 4 and 5 bits.
const (
	spread2 = 1.118
	spread4 = 4.610
	spread5 = 9.233
)

// quantByName finds a type however its name is written.
func quantByName(name string) (*quant, error) {
	if q := quants[strings.ToLower(name)]; q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("unknown type %q; possible: %s", name, strings.Join(TypeNames(), " "))
}

// TypeNames lists the tensor types that can be written.
func TypeNames() []string {
	out := make([]string, 0, len(quants))
	for n := range quants {
		out = append(out, n)
	}
	sort.Slice(out, func(i, j int) bool { return quants[out[i]].id < quants[out[j]].id })
	return out
}

// rowBytes is the size of a row of n values.
func (q *quant) rowBytes(n int64) int64 { return n / int64(q.block) * int64(q.bytes) }

// scaleTable is sixteen scales about 1, so that blocks differ as real ones do.
func scaleTable(scale float64) (t [16]uint16) {
	for i := range t {
		t[i] = toF16(float32(scale * (0.76 + 0.032*float64(i))))
	}
	return t
}

// half is a power of two near x, for formats whose scale is an exponent.
func half(x float64) int { return int(math.Round(math.Log2(x))) }
