package synth

import "math"

// Routing has to depend on the token and its context, and yet some experts
// have to be picked more often than others, in models without a router bias.
// So an eighth of the residual stream carries the same pattern of +1 and -1
// for every token; each router row is random over the rest, which makes its
// logit a normal variate of the hidden state, plus a multiple of the pattern,
// which makes a constant. With logits z = bias + noise an expert is picked when
// z exceeds some threshold t, so with probability Phi((bias-t)/spread): the
// bias that gives a wanted probability p is spread times the quantile of p.
// Attention and the head do not see the pattern: their norms are 0 there.

// routerSpread is the standard deviation of router logits over tokens.
const routerSpread = 1.5

// patternWidth is how many values of the residual stream are the pattern.
func (s Spec) patternWidth() int {
	if s.Skew == 0 {
		return 0
	}
	return s.Embd / 8
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

// router is one layer's router rows.
func (s Spec) router(name string, layer int) source {
	width := s.patternWidth()
	order := make([]int, s.Experts)
	for i := range order {
		order[i] = i
	}
	r := newRNG(s.Seed, name+" order", 0)
	r.shuffle(order)
	// The pattern's share shrinks as layers add to the residual stream.
	grown := math.Sqrt(1 + growth*float64(layer)/float64(s.Layers))
	bias := make([]float64, s.Experts)
	for rank, p := range popularity(s.Experts, s.Used, s.Skew) {
		bias[order[rank]] = routerSpread * probit(p) * grown / float64(max(width, 1))
	}
	sigma := routerSpread / math.Sqrt(float64(s.Embd-width))
	signs := s.pattern()
	return &rowSource{quant: quants["f32"], columns: int64(s.Embd), row: func(dst []float32, e int) {
		r := newRNG(s.Seed, name, e)
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
