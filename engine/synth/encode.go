package synth

import "math"

func encodeF32(dst []byte, x []float32) {
	for i, v := range x {
		le.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func encodeF16(dst []byte, x []float32) {
	for i, v := range x {
		le.PutUint16(dst[2*i:], toF16(v))
	}
}

func encodeQ8_0(dst []byte, x []float32) {
	for ; len(x) >= 32; x, dst = x[32:], dst[34:] {
		var top float32
		for _, v := range x[:32] {
			top = max(top, max(v, -v))
		}
		le.PutUint16(dst, toF16(top/127))
		if top == 0 {
			clear(dst[2:34])
			continue
		}
		inv := 127 / top
		for i, v := range x[:32] {
			dst[2+i] = byte(int8(math.Round(float64(v * inv))))
		}
	}
}

// encodeQ4_0 maps the value of largest magnitude to -8, the end of the range
// that reaches further.
func encodeQ4_0(dst []byte, x []float32) {
	for ; len(x) >= 32; x, dst = x[32:], dst[18:] {
		var top float32
		for _, v := range x[:32] {
			if max(v, -v) > max(top, -top) {
				top = v
			}
		}
		le.PutUint16(dst, toF16(top/-8))
		var inv float32
		if top != 0 {
			inv = -8 / top
		}
		level := func(v float32) byte { return byte(min(max(v*inv+8.5, 0), 15)) }
		for i := range 16 {
			dst[2+i] = level(x[i]) | level(x[i+16])<<4
		}
	}
}

// toF16 rounds to the nearest half-precision number, ties to even.
func toF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x477ff000: // rounds beyond the largest
		return sign | 0x7c00
	case b < 0x38800000: // below the smallest normal number
		n := math.RoundToEven(float64(math.Float32frombits(b)) * (1 << 24))
		return sign | uint16(n)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

func fromF16(h uint16) float32 {
	exp, frac := int(h>>10&31), float64(h&1023)
	var v float64
	switch exp {
	case 0:
		v = math.Ldexp(frac, -24)
	case 31:
		v = math.Inf(1)
		if frac != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1024+frac, exp-25)
	}
	if h&0x8000 != 0 {
		v = -v
	}
	return float32(v)
}
