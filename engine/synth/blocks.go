package synth

import (
	"encoding/binary"
	"math"
)

var le = binary.LittleEndian

func mendF32(sigma, _ float64) mender {
	var table [1 << normalBits]uint32
	for i, z := range normals {
		table[i] = math.Float32bits(float32(z * sigma))
	}
	pick := func(v uint64) uint64 { return uint64(table[v&(1<<normalBits-1)]) }
	return func(b []byte) {
		i := 0
		for ; i+8 <= len(b); i += 8 {
			v := le.Uint64(b[i:])
			le.PutUint64(b[i:], pick(v)|pick(v>>32)<<32)
		}
		if i < len(b) {
			le.PutUint32(b[i:], uint32(pick(uint64(le.Uint32(b[i:])))))
		}
	}
}

func mendF16(sigma, _ float64) mender {
	return mend16(sigma, toF16)
}

func mendBF16(sigma, _ float64) mender {
	return mend16(sigma, func(x float32) uint16 { return uint16(math.Float32bits(x) >> 16) })
}

func mend16(sigma float64, convert func(float32) uint16) mender {
	var table [1 << normalBits]uint16
	for i, z := range normals {
		table[i] = convert(float32(z * sigma))
	}
	pick := func(v uint64) uint64 { return uint64(table[v&(1<<normalBits-1)]) }
	return func(b []byte) {
		i := 0
		for ; i+8 <= len(b); i += 8 {
			v := le.Uint64(b[i:])
			le.PutUint64(b[i:], pick(v)|pick(v>>16)<<16|pick(v>>32)<<32|pick(v>>48)<<48)
		}
		for ; i < len(b); i += 2 {
			le.PutUint16(b[i:], uint16(pick(uint64(le.Uint16(b[i:])))))
		}
	}
}

// mendScale mends blocks of size bytes that have one scale, of either sign
// because the formats' whole numbers reach one further below zero than above.
func mendScale(size, at int) func(sigma, spread float64) mender {
	return func(sigma, spread float64) mender {
		table := scaleTable(sigma / spread)
		return func(b []byte) {
			for ; len(b) >= size; b = b[size:] {
				v := le.Uint16(b[at:])
				le.PutUint16(b[at:], table[v&15]|v&0x8000)
			}
		}
	}
}

var mendQ4_0 = mendScale(18, 0)

func mendQ8_0(sigma, spread float64) mender {
	table := scaleTable(sigma / spread)
	return func(b []byte) {
		for ; len(b) >= 34; b = b[34:] {
			v := le.Uint16(b)
			le.PutUint16(b, table[v&15]|v&0x8000)
			for i := 2; i < 34; i += 8 {
				// Odd numbers only: -128 is not a value the format's writers produce.
				le.PutUint64(b[i:], le.Uint64(b[i:])|0x0101010101010101)
			}
		}
	}
}

// mendPair mends blocks with a scale and an offset that centres them: middle is
// the middle of the format's whole numbers. Formats with a scale per part of
// the block subtract offsets, the others add them.
func mendPair(size, at int, middle float64, parts func([]byte)) func(sigma, spread float64) mender {
	sign := 1.0
	if parts == nil {
		sign = -1
	}
	return func(sigma, spread float64) mender {
		scales, offsets := scaleTable(sigma/spread), scaleTable(sigma/spread)
		for i := range offsets {
			offsets[i] = toF16(float32(sign * middle * float64(fromF16(scales[i]))))
		}
		return func(b []byte) {
			for ; len(b) >= size; b = b[size:] {
				i := b[at] & 15
				le.PutUint16(b[at:], scales[i])
				le.PutUint16(b[at+2:], offsets[i])
				if parts != nil {
					parts(b[at+4:])
				}
			}
		}
	}
}

// scales6 makes the packed six-bit scales and offsets of the eight parts of a
// block equal and between 32 and 63.
func scales6(b []byte) {
	low := le.Uint32(b) | 0xa0a0a0a0
	high := le.Uint32(b[8:]) & 0x0f0f0f0f
	le.PutUint32(b, low)
	le.PutUint32(b[4:], low)
	le.PutUint32(b[8:], high|high<<4)
}

func mendQ2K(sigma, spread float64) mender {
	scales, offsets := scaleTable(sigma/spread), scaleTable(sigma/spread*1.5)
	return func(b []byte) {
		for ; len(b) >= 84; b = b[84:] {
			for i := 0; i < 16; i += 8 {
				// Scale in the low four bits, offset in the high: equal, 8 to 15.
				v := le.Uint64(b[i:])&0x0707070707070707 | 0x0808080808080808
				le.PutUint64(b[i:], v|v<<4)
			}
			i := b[80] & 15
			le.PutUint16(b[80:], scales[i])
			le.PutUint16(b[82:], offsets[i])
		}
	}
}

func mendQ6K(sigma, spread float64) mender {
	table := scaleTable(sigma / spread)
	return func(b []byte) {
		for ; len(b) >= 210; b = b[210:] {
			for i := 192; i < 208; i += 8 {
				v := le.Uint64(b[i:])
				// Eight scales of 32 to 95, negated where the top bit says so.
				sign := v >> 7 & 0x0101010101010101
				size := v&0x3f3f3f3f3f3f3f3f + 0x2020202020202020
				le.PutUint64(b[i:], size^sign*0xff+sign)
			}
			le.PutUint16(b[208:], table[b[208]&15])
		}
	}
}

func mendMXFP4(sigma, spread float64) mender {
	exponent := byte(min(max(128+half(sigma/spread), 1), 254))
	return func(b []byte) {
		for ; len(b) >= 17; b = b[17:] {
			b[0] = exponent
		}
	}
}
