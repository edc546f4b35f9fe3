package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Samples are the per-token times of a run, in nanoseconds. Columns may differ
// in length: one that was not recorded is empty. The tokens themselves are not
// among them: whoever has the tokenizer can read those.
type Samples struct {
	NS       []int64 // of each decoded token
	WaitNS   []int64 // of those, waiting for reads
	ManageNS []int64 // of those, cache management
}

// SamplesOf returns the columns of a run.
func SamplesOf(r *Run) Samples { return Samples{r.TokenNS, r.TokenWaitNS, r.TokenManageNS} }

// packVersion is the first byte of packed columns.
const packVersion = 1

// PackSamples packs the columns and says how long the longest is; nil when all
// are empty.
func PackSamples(s Samples) ([]byte, int) {
	n := max(len(s.NS), len(s.WaitNS), len(s.ManageNS))
	if n == 0 {
		return nil, 0
	}
	return packColumns(s.NS, s.WaitNS, s.ManageNS), n
}

// UnpackSamples is the inverse of PackSamples.
func UnpackSamples(blob []byte) (s Samples, err error) {
	cols, err := unpackColumns(blob, 3)
	if err != nil || cols == nil {
		return s, err
	}
	return Samples{cols[0], cols[1], cols[2]}, nil
}

// PackTokens packs token ids; nil when there are none.
func PackTokens(tokens []int32) []byte {
	if len(tokens) == 0 {
		return nil
	}
	col := make([]int64, len(tokens))
	for i, t := range tokens {
		col[i] = int64(t)
	}
	return packColumns(col)
}

// UnpackTokens is the inverse of PackTokens.
func UnpackTokens(blob []byte) ([]int32, error) {
	cols, err := unpackColumns(blob, 1)
	if err != nil || cols == nil {
		return nil, err
	}
	tokens := make([]int32, len(cols[0]))
	for i, v := range cols[0] {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return nil, fmt.Errorf("packed column: token %d does not fit", v)
		}
		tokens[i] = int32(v)
	}
	return tokens, nil
}

// packColumns writes each column as its length and then the zigzag varints of
// the differences between neighbours: some three bytes a value.
func packColumns(cols ...[]int64) []byte {
	buf := []byte{packVersion}
	for _, col := range cols {
		buf = binary.AppendUvarint(buf, uint64(len(col)))
		var last int64
		for _, v := range col {
			buf = binary.AppendVarint(buf, v-last)
			last = v
		}
	}
	return buf
}

// unpackColumns fails on a blob that is cut short or says more than it holds,
// and never allocates more than the blob could hold.
func unpackColumns(blob []byte, n int) ([][]int64, error) {
	if len(blob) == 0 {
		return nil, nil
	}
	if blob[0] != packVersion {
		return nil, fmt.Errorf("packed columns: packing %d is not known", blob[0])
	}
	cols := make([][]int64, n)
	rest := blob[1:]
	var err error
	for i := range cols {
		if cols[i], rest, err = unpackColumn(rest); err != nil {
			return nil, fmt.Errorf("packed column %d: %w", i, err)
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("packed columns: %d bytes too many", len(rest))
	}
	return cols, nil
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
