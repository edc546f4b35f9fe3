package engine

import (
	"encoding/hex"
	"hash"
	"hash/fnv"
	"unsafe"
)

// logitsHash is a 64-bit FNV-1a over the bits of every logit of every step, in
// the machine's byte order. Two runs that agree in it computed the same numbers.
type logitsHash struct{ h hash.Hash64 }

func newLogitsHash() *logitsHash { return &logitsHash{fnv.New64a()} }

func (l *logitsHash) add(logits []float32) {
	if len(logits) > 0 {
		_, _ = l.h.Write(unsafe.Slice((*byte)(unsafe.Pointer(&logits[0])), 4*len(logits)))
	}
}

func (l *logitsHash) hex() string { return hex.EncodeToString(l.h.Sum(nil)) }
