package synth

import (
	"math"
	"slices"
)

// Routing has to depend on the token and its context, and yet some experts
// have to be picked more often than others, in models without a router bias.
// So an eighth of the residual stream carries the same pattern of +1 and -1
// for every token; each router row is random over the rest, which makes its
// logit a normal variate of the hidden state, plus a multiple of the pattern,
// which makes a constant. How large a constant gives an expert its share is
// found by simulating the choice (see biases).
//
// Real routing also has a memory: neighbouring tokens share experts. It comes
// from attention, which here sees the pattern through equal weights in every
// query and key row. The rotation of positions then makes the score fall with
// the logarithm of the distance, so attention falls as a power of it, and each
// token's state holds a mean of the tokens just before it.

// routerSpread is the standard deviation of router logits over tokens.
const routerSpread = 1.5

// patternWidth is how many values of the residual stream are the pattern.
func (s Spec) patternWidth() int {
	return max(32, s.Embd/8/32*32)
}

// grown is the size of the residual stream before a layer, 1 at the first: the
// pattern's share shrinks by it, as layers add to the stream.
func (b *builder) grown(layer int) float64 {
	return math.Sqrt(1 + b.arch.growth*float64(layer)/float64(b.Layers))
}

// popularity is the wanted share of tokens that pick the expert of each rank:
// a power law that sums to the routing width, no share above almost always.
func popularity(experts, used int, skew float64) []float64 {
	const top = 0.98
	p := make([]float64, experts)
	if used >= experts {
		for r := range p {
			p[r] = top
		}
		return p
	}
	capped, left := 0, float64(used)
	for {
		var sum float64
		for r := capped; r < experts; r++ {
			sum += math.Pow(float64(r+1), -skew)
		}
		scale := left / sum
		if scale*math.Pow(float64(capped+1), -skew) <= top || capped == used-1 {
			for r := capped; r < experts; r++ {
				p[r] = min(top, scale*math.Pow(float64(r+1), -skew))
			}
			return p
		}
		p[capped] = top
		left -= top
		capped++
	}
}

// biases are the constants to add to each rank's standard normal logit so that
// the highest used logits are those of each rank as often as popularity wants.
func biases(experts, used int, skew float64) []float64 {
	want := popularity(experts, used, skew)
	z := make([]float64, experts)
	if skew == 0 || used >= experts {
		return z
	}
	for i, p := range want {
		z[i] = probit(p) // right if the lowest logit picked never varied
	}
	// A simulated token gives, for each expert, the least logit that would have
	// been picked, and so the chance of picking it: less noisy than counting.
	const rounds, tokens = 12, 200
	logits, sorted := make([]float64, experts), make([]float64, experts)
	for round := range rounds {
		r := newRNG(uint64(round), "popularity", 0)
		share := make([]float64, experts)
		for range tokens {
			for i := range logits {
				logits[i] = z[i] + r.gauss()
			}
			copy(sorted, logits)
			slices.Sort(sorted)
			last, next := sorted[experts-used], sorted[experts-used-1]
			for i, l := range logits {
				least := last
				if l >= last {
					least = next
				}
				share[i] += normalShare(z[i]-least) / tokens
			}
		}
		for i, p := range want {
			z[i] += 0.8 * (probit(p) - probit(min(max(share[i], 1e-9), 1-1e-9)))
		}
	}
	return z
}

// normalShare is the share of a normal distribution below x.
func normalShare(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// router is one layer's router rows.
func (b *builder) router(name string, layer int) source {
	width := b.patternWidth()
	order := make([]int, b.Experts)
	for i := range order {
		order[i] = i
	}
	r := newRNG(b.Seed, name+" order", 0)
	r.shuffle(order)
	bias := make([]float64, b.Experts)
	for rank, z := range b.biases {
		bias[order[rank]] = routerSpread * z * b.grown(layer) / float64(width)
	}
	sigma := routerSpread / math.Sqrt(float64(b.Embd-width))
	signs := b.pattern()
	return &rowSource{quant: quants["f32"], columns: int64(b.Embd), row: func(dst []float32, e int) {
		r := newRNG(b.Seed, name, e)
		for i := range dst {
			if i < width {
				dst[i] = float32(bias[e]) * signs[i]
			} else {
				dst[i] = float32(sigma * r.gauss())
			}
		}
	}}
}

// pattern is the part of the residual stream that every token shares.
func (s Spec) pattern() []float32 {
	out := make([]float32, s.patternWidth())
	r := newRNG(s.Seed, "pattern", 0)
	for i := range out {
		out[i] = float32(1 - 2*r.intn(2))
	}
	return out
}

// embedding is the table of token vectors.
func (s Spec) embedding(q *quant) source {
	signs := s.pattern()
	return &rowSource{quant: q, columns: int64(s.Embd), row: func(dst []float32, token int) {
		r := newRNG(s.Seed, "token", token)
		copy(dst, signs)
		for i := len(signs); i < len(dst); i++ {
			dst[i] = float32(r.gauss())
		}
	}}
}
