package synth

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// decoders read blocks as the formats define them, written from the formats'
// layout and not from the code under test.
var decoders = map[string]func(b []byte) []float64{
	"f32":  func(b []byte) []float64 { return []float64{float64(math.Float32frombits(le.Uint32(b)))} },
	"f16":  func(b []byte) []float64 { return []float64{f16(b)} },
	"bf16": func(b []byte) []float64 { return []float64{float64(math.Float32frombits(uint32(le.Uint16(b)) << 16))} },
	"q8_0": func(b []byte) []float64 {
		return each(32, func(i int) float64 { return f16(b) * float64(int8(b[2+i])) })
	},
	"q4_0": func(b []byte) []float64 {
		return each(32, func(i int) float64 { return f16(b) * (nibble(b[2:], i) - 8) })
	},
	"q4_1": func(b []byte) []float64 {
		return each(32, func(i int) float64 { return f16(b)*nibble(b[4:], i) + f16(b[2:]) })
	},
	"q5_0": func(b []byte) []float64 {
		return each(32, func(i int) float64 { return f16(b) * (five(b[2:], i) - 16) })
	},
	"q5_1": func(b []byte) []float64 {
		return each(32, func(i int) float64 { return f16(b)*five(b[4:], i) + f16(b[2:]) })
	},
	"q2_k": decodeQ2K,
	"q3_k": decodeQ3K,
	"q4_k": func(b []byte) []float64 { return decodeQ45K(b, b[16:], nil) },
	"q5_k": func(b []byte) []float64 { return decodeQ45K(b, b[48:], b[16:48]) },
	"q6_k": decodeQ6K,
	"iq4_nl": func(b []byte) []float64 {
		return each(32, func(i int) float64 { return f16(b) * nonLinear[int(nibble(b[2:], i))] })
	},
	"mxfp4": func(b []byte) []float64 {
		return each(32, func(i int) float64 { return math.Ldexp(e2m1[int(nibble(b[1:], i))], int(b[0])-127) })
	},
}

var (
	nonLinear = []float64{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	e2m1      = []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}
)

func f16(b []byte) float64 { return float64(fromF16(le.Uint16(b))) }

func each(n int, value func(i int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = value(i)
	}
	return out
}

// nibble is value i of 32: low halves first, then high halves.
func nibble(b []byte, i int) float64 { return float64(b[i%16] >> (i / 16 * 4) & 15) }

// five adds the fifth bits, which come first.
func five(b []byte, i int) float64 {
	return nibble(b[4:], i) + float64(le.Uint32(b)>>i&1)*16
}

func decodeQ2K(b []byte) []float64 {
	return each(256, func(i int) float64 {
		s := b[i/16]
		q := b[16+i/128*32+i%32] >> (i % 128 / 32 * 2) & 3
		return f16(b[80:])*float64(s&15)*float64(q) - f16(b[82:])*float64(s>>4)
	})
}

func decodeQ3K(b []byte) []float64 {
	return each(256, func(i int) float64 {
		j := i / 16 // of sixteen scales: four low bits, then two high bits
		s := b[96+j%8] >> (j / 8 * 4) & 15
		s |= b[104+j%4] >> (j / 4 * 2) & 3 << 4
		q := int(b[32+i/128*32+i%32]>>(i%128/32*2)&3) - 4
		if b[i%32]>>(i/32)&1 == 1 {
			q += 4
		}
		return f16(b[108:]) * float64(int(s)-32) * float64(q)
	})
}

func decodeQ45K(b, low, high []byte) []float64 {
	return each(256, func(i int) float64 {
		j := i / 32
		var s, m byte
		if j < 4 {
			s, m = b[4+j]&63, b[8+j]&63
		} else {
			s, m = b[8+j]&15|b[j]>>6<<4, b[8+j]>>4|b[4+j]>>6<<4
		}
		q := low[i/64*32+i%32] >> (i % 64 / 32 * 4) & 15
		if high != nil {
			q |= high[i%32] >> j & 1 << 4
		}
		return f16(b)*float64(s)*float64(q) - f16(b[2:])*float64(m)
	})
}

func decodeQ6K(b []byte) []float64 {
	return each(256, func(i int) float64 {
		n, part, l := i/128, i%128/32, i%32
		low := b[n*64+part%2*32+l] >> (part / 2 * 4) & 15
		high := b[128+n*32+l] >> (part * 2) & 3
		return f16(b[208:]) * float64(int8(b[192+i/16])) * float64(int(low|high<<4)-32)
	})
}

func decode(q *quant, b []byte) []float64 {
	var out []float64
	for ; len(b) > 0; b = b[q.bytes:] {
		out = append(out, decoders[q.name](b[:q.bytes])...)
	}
	return out
}

// Random blocks must be centred, of the wanted spread and free of outliers, or
// activations would drift or overflow after some layers.
func TestRandomBlocks(t *testing.T) {
	for _, name := range TypeNames() {
		for _, sigma := range []float64{0.05, 0.002} {
			q := quants[name]
			b := make([]byte, q.bytes*(1<<17/q.block))
			r := newRNG(1, name, 0)
			r.bytes(b)
			q.prepare(sigma, q.spread)(b)
			var sum, squares, top float64
			values := decode(q, b)
			for _, v := range values {
				sum, squares, top = sum+v, squares+v*v, max(top, math.Abs(v))
			}
			n := float64(len(values))
			mean, spread := sum/n, math.Sqrt(squares/n)
			tolerance := 0.02
			if name == "mxfp4" {
				tolerance = 0.42 // its scales are powers of two
			}
			if !(math.Abs(spread/sigma-1) < tolerance) || !(math.Abs(mean) < 0.02*sigma) || !(top < 8*sigma) {
				t.Errorf("%s at %g: mean %g, spread %g, largest %g", name, sigma, mean, spread, top)
			}
		}
	}
}

func TestEncodersRoundTrip(t *testing.T) {
	for name, worst := range map[string]float64{"f32": 0, "f16": 1.0 / 2048, "q8_0": 0.5 / 127 * 1.01, "q4_0": 1.0 / 8 * 1.01} {
		q := quants[name]
		rapid.Check(t, func(t *rapid.T) {
			x := rapid.SliceOfN(rapid.Float32Range(-1000, 1000), 32, 32).Draw(t, "x")
			b := make([]byte, 32/q.block*q.bytes)
			q.encode(b, x)
			var top float64
			for _, v := range x {
				top = max(top, math.Abs(float64(v)))
			}
			for i, v := range decode(q, b) {
				// Scales are half-precision numbers, which adds their error.
				if d := math.Abs(v - float64(x[i])); d > top*(worst+1.0/1024*min(worst*1e9, 1))+1e-6 {
					t.Errorf("%s: %g became %g, off by %g of %g", name, x[i], v, d, top)
				}
			}
		})
	}
}

func TestHalfPrecision(t *testing.T) {
	for h := range 1 << 16 {
		x := fromF16(uint16(h))
		if x != x {
			continue
		}
		if got := toF16(x); got != uint16(h) {
			t.Fatalf("%#04x is %g, which becomes %#04x", h, x, got)
		}
	}
	for x, want := range map[float32]uint16{65519: 0x7bff, 65520: 0x7c00, 1 + 1.0/2048: 0x3c00, 1 + 3.0/2048: 0x3c02, 1e-9: 0} {
		if got := toF16(x); got != want {
			t.Errorf("%g becomes %#04x, want %#04x", x, got, want)
		}
	}
}
