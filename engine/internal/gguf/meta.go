package gguf

import (
	"math"

	parser "github.com/gpustack/gguf-parser-go"
)

// meta looks metadata up without the library's panics on a wrong type.
type meta map[string]parser.GGUFMetadataKV

func newMeta(kvs parser.GGUFMetadataKVs) meta {
	m := make(meta, len(kvs))
	for _, kv := range kvs {
		m[kv.Key] = kv
	}
	return m
}

func (m meta) text(key string) string {
	s, _ := m[key].Value.(string)
	return s
}

// num is the whole number under key, or def where it is absent, of another
// type, negative or beyond what an int32 holds.
func (m meta) num(key string, def int) int {
	if n, ok := whole(m[key].Value); ok {
		return n
	}
	return def
}

// nums is an array of whole numbers under key, or a scalar repeated n times.
func (m meta) nums(key string, n int) []int {
	v := m[key].Value
	arr, ok := v.(parser.GGUFMetadataKVArrayValue)
	if !ok {
		x, ok := whole(v)
		if !ok {
			return nil
		}
		out := make([]int, n)
		for i := range out {
			out[i] = x
		}
		return out
	}
	out := make([]int, 0, len(arr.Array))
	for _, item := range arr.Array {
		x, ok := whole(item)
		if !ok {
			return nil
		}
		out = append(out, x)
	}
	return out
}

// length is the number of items of the array under key.
func (m meta) length(key string) int {
	arr, _ := m[key].Value.(parser.GGUFMetadataKVArrayValue)
	return int(min(arr.Len, math.MaxInt32))
}

func whole(v any) (int, bool) {
	var n int64
	switch x := v.(type) {
	case uint8:
		n = int64(x)
	case int8:
		n = int64(x)
	case uint16:
		n = int64(x)
	case int16:
		n = int64(x)
	case uint32:
		n = int64(x)
	case int32:
		n = int64(x)
	case uint64:
		if x > math.MaxInt32 {
			return 0, false
		}
		n = int64(x)
	case int64:
		n = x
	default:
		return 0, false
	}
	if n < 0 || n > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}
