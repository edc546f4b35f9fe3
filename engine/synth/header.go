package synth

import (
	"encoding/binary"
	"math"
)

// alignment of tensor data in the files written.
const alignment = 32

func align(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// GGUF value types.
const (
	typeU16    = 2
	typeU32    = 4
	typeI32    = 5
	typeF32    = 6
	typeBool   = 7
	typeString = 8
	typeArray  = 9
	typeU64    = 10
)

// keys collects encoded metadata in the order it was added.
type keys struct {
	n   int
	buf []byte
}

func (k *keys) start(name string, kind uint32) {
	k.n++
	k.buf = putString(k.buf, name)
	k.buf = binary.LittleEndian.AppendUint32(k.buf, kind)
}

func (k *keys) text(name, v string) {
	k.start(name, typeString)
	k.buf = putString(k.buf, v)
}

func (k *keys) u16(name string, v int) {
	k.start(name, typeU16)
	k.buf = binary.LittleEndian.AppendUint16(k.buf, uint16(v))
}

func (k *keys) u32(name string, v int) {
	k.start(name, typeU32)
	k.buf = binary.LittleEndian.AppendUint32(k.buf, uint32(v))
}

func (k *keys) i32(name string, v int) {
	k.start(name, typeI32)
	k.buf = binary.LittleEndian.AppendUint32(k.buf, uint32(v))
}

func (k *keys) u64(name string, v uint64) {
	k.start(name, typeU64)
	k.buf = binary.LittleEndian.AppendUint64(k.buf, v)
}

func (k *keys) f32(name string, v float64) {
	k.start(name, typeF32)
	k.buf = binary.LittleEndian.AppendUint32(k.buf, math.Float32bits(float32(v)))
}

func (k *keys) boolean(name string, v bool) {
	k.start(name, typeBool)
	b := byte(0)
	if v {
		b = 1
	}
	k.buf = append(k.buf, b)
}

func (k *keys) array(name string, kind uint32, n int) {
	k.start(name, typeArray)
	k.buf = binary.LittleEndian.AppendUint32(k.buf, kind)
	k.buf = binary.LittleEndian.AppendUint64(k.buf, uint64(n))
}

func (k *keys) texts(name string, vs []string) {
	k.array(name, typeString, len(vs))
	for _, v := range vs {
		k.buf = putString(k.buf, v)
	}
}

func (k *keys) f32s(name string, vs []float32) {
	k.array(name, typeF32, len(vs))
	for _, v := range vs {
		k.buf = binary.LittleEndian.AppendUint32(k.buf, math.Float32bits(v))
	}
}

func (k *keys) i32s(name string, vs []int32) {
	k.array(name, typeI32, len(vs))
	for _, v := range vs {
		k.buf = binary.LittleEndian.AppendUint32(k.buf, uint32(v))
	}
}

func putString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// header encodes everything before the tensor data, padded, and the absolute
// offset of each tensor and of the end of the file.
func header(k *keys, ts []tensor) (head []byte, offsets []int64, end int64) {
	head = append(head, "GGUF"...)
	head = binary.LittleEndian.AppendUint32(head, 3)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(ts)))
	head = binary.LittleEndian.AppendUint64(head, uint64(k.n))
	head = append(head, k.buf...)
	offsets = make([]int64, len(ts))
	var at int64
	for i, t := range ts {
		offsets[i] = at
		head = putString(head, t.name)
		head = binary.LittleEndian.AppendUint32(head, uint32(len(t.dims)))
		for _, d := range t.dims {
			head = binary.LittleEndian.AppendUint64(head, uint64(d))
		}
		head = binary.LittleEndian.AppendUint32(head, t.quant.id)
		head = binary.LittleEndian.AppendUint64(head, uint64(at))
		at += align(t.size())
	}
	head = append(head, make([]byte, align(int64(len(head)))-int64(len(head)))...)
	for i := range offsets {
		offsets[i] += int64(len(head))
	}
	return head, offsets, int64(len(head)) + at
}
