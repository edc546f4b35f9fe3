package synth

import (
	"encoding/binary"
	"hash/fnv"
	"math"
)

// rng is splitmix64: a counter with a mixing function, so that any part of any
// tensor can be made by itself, in any order, by any number of workers.
type rng uint64

// newRNG is the stream for one unit of one named thing.
func newRNG(seed uint64, name string, unit int) rng {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rng(seed)
	r = rng(r.next() ^ h.Sum64())
	r = rng(r.next() + uint64(unit))
	return rng(r.next())
}

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// intn is in [0,n).
func (r *rng) intn(n int) int { return int(r.next() % uint64(n)) }

// gauss is normally distributed.
func (r *rng) gauss() float64 { return normals[r.next()>>(64-normalBits)] }

// shuffle permutes p.
func (r *rng) shuffle(p []int) {
	for i := len(p) - 1; i > 0; i-- {
		j := r.intn(i + 1)
		p[i], p[j] = p[j], p[i]
	}
}

// bytes fills dst.
func (r *rng) bytes(dst []byte) {
	i := 0
	for ; i+8 <= len(dst); i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], r.next())
	}
	if i < len(dst) {
		var tail [8]byte
		binary.LittleEndian.PutUint64(tail[:], r.next())
		copy(dst[i:], tail[:])
	}
}

// normals are the quantiles of the normal distribution, one picked at random
// being a normal variate: much cheaper than making one.
const normalBits = 12

var normals = func() (t [1 << normalBits]float64) {
	for i := range t {
		t[i] = probit((float64(i) + 0.5) / float64(len(t)))
	}
	return t
}()

// probit is the inverse of the normal distribution function.
func probit(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
