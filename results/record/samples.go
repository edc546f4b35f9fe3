package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Samples are a run's per-token columns. Columns may differ in length: a
// column that was not recorded is empty.
type Samples struct {
	Tokens   []int32
	NS       []int64 // nanoseconds of each decoded token
	WaitNS   []int64 // of those, waiting for reads
	ManageNS []int64 // of those, cache management
}

// SamplesOf returns the columns of a run.
func SamplesOf(r *Run) Samples {
	return Samples{r.Tokens, r.TokenNS, r.TokenWaitNS, r.TokenManageNS}
}

// packVersion is the first byte of packed samples.
const packVersion = 1

// PackSamples packs the columns, each as its length and then the zigzag varints
// of the differences between neighbours: some five bytes a token. It returns
// nil when all are empty, and the length of the longest column.
func PackSamples(s Samples) ([]byte, int) {
	n := max(len(s.Tokens), len(s.NS), len(s.WaitNS), len(s.ManageNS))
	if n == 0 {
		return nil, 0
	}
	buf := make([]byte, 0, 2+6*n)
	buf = append(buf, packVersion)
	buf = packColumn(buf, len(s.Tokens), func(i int) int64 { return int64(s.Tokens[i]) })
	for _, col := range [][]int64{s.NS, s.WaitNS, s.ManageNS} {
		buf = packColumn(buf, len(col), func(i int) int64 { return col[i] })
	}
	return buf, n
}

func packColumn(buf []byte, n int, at func(int) int64) []byte {
	buf = binary.AppendUvarint(buf, uint64(n))
	var last int64
	for i := range n {
		v := at(i)
		buf = binary.AppendVarint(buf, v-last)
		last = v
	}
	return buf
}

// UnpackSamples is the inverse of PackSamples. It fails on a blob that is cut
// short or says more than it holds, and never allocates more than the blob
// could hold.
func UnpackSamples(blob []byte) (Samples, error) {
	var s Samples
	if len(blob) == 0 {
		return s, nil
	}
	if blob[0] != packVersion {
		return s, fmt.Errorf("token samples: packing %d is not known", blob[0])
	}
	cols := make([][]int64, 4)
	rest := blob[1:]
	var err error
	for i := range cols {
		if cols[i], rest, err = unpackColumn(rest); err != nil {
			return s, fmt.Errorf("token samples, column %d: %w", i, err)
		}
	}
	if len(rest) > 0 {
		return s, fmt.Errorf("token samples: %d bytes too many", len(rest))
	}
	for _, v := range cols[0] {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return s, fmt.Errorf("token samples: token %d does not fit", v)
		}
		s.Tokens = append(s.Tokens, int32(v))
	}
	s.NS, s.WaitNS, s.ManageNS = cols[1], cols[2], cols[3]
	return s, nil
}

func unpackColumn(buf []byte) (col []int64, rest []byte, err error) {
	n, w := binary.Uvarint(buf)
	if w <= 0 {
		return nil, nil, fmt.Errorf("its length is cut short")
	}
	buf = buf[w:]
	if n > uint64(len(buf)) { // a value takes a byte at least
		return nil, nil, fmt.Errorf("%d values in %d bytes", n, len(buf))
	}
	if n > 0 {
		col = make([]int64, n)
	}
	var last int64
	for i := range col {
		d, w := binary.Varint(buf)
		if w <= 0 {
			return nil, nil, fmt.Errorf("value %d is cut short", i)
		}
		buf = buf[w:]
		last += d
		col[i] = last
	}
	return col, buf, nil
}
