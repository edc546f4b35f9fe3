package cachepolicy

import "math"

// Constants of the A2D score, chosen by replay over many configurations;
// changing any one of them moves the hit rate by at most 0.7 points.
const (
	a2dFast    = 0.5  // decay of r1 a turn
	a2dSlow    = 0.15 // weight of r2 in the score
	a2dAlign   = 0.5  // exponent of the discount over a whole cycle of layers
	a2dPrior   = 0.1  // weight of a prompt's shares
	a2dHalving = 24   // turns in which r2 halves
	a2dFlush   = 1e-30
)

// a2d scores every (layer, expert), resident or not, by two decayed counts of
// its selections, a fast and a slow one, which decay only on the layer's own
// turn (the alignment). A miss gives up the group's resident with the smallest
// score, discounted by how far away its layer's turn is: bytes needed soon are
// worth more than bytes needed late in the cycle.
type a2d struct {
	ranked
	r1, r2   []float64
	decay2   float64
	discount []float64 // by turns until the victim's layer
}

func newA2D(base state) *a2d {
	n := base.layers * base.experts
	p := &a2d{
		ranked: newRanked(base), r1: make([]float64, n), r2: make([]float64, n),
		decay2:   math.Exp2(-1.0 / a2dHalving),
		discount: make([]float64, base.layers),
	}
	for d := range p.discount {
		p.discount[d] = math.Exp2(-a2dAlign * float64(d) / float64(base.layers))
	}
	return p
}

func (p *a2d) Name() string { return A2D }

func (p *a2d) Touch(layer int, ids, counts []int32, tokens int, prompt bool) {
	p.begin(layer, ids)
	if prompt {
		p.addPrompt(layer, ids, counts, tokens)
	} else {
		p.addDecode(layer, ids)
	}
}

// addPrompt credits the shares of a prompt as if they had been the steady
// state of both counts, scaled by the prior. Nothing decays.
func (p *a2d) addPrompt(layer int, ids, counts []int32, tokens int) {
	base := layer * p.experts
	for n, id := range ids {
		i := base + int(id)
		share := float64(counts[n]) / float64(max(tokens, 1))
		p.r1[i] += a2dPrior * share / (1 - a2dFast)
		p.r2[i] += a2dPrior * share / (1 - p.decay2)
		p.score[i] = p.r1[i] + a2dSlow*p.r2[i]
	}
}

func (p *a2d) addDecode(layer int, ids []int32) {
	base := layer * p.experts
	r1 := p.r1[base : base+p.experts]
	r2 := p.r2[base : base+p.experts]
	score := p.score[base : base+p.experts]
	decay2 := p.decay2
	for e := range r1 {
		a, b := r1[e]*a2dFast, r2[e]*decay2
		if a < a2dFlush { // keep out of the slow denormals
			a = 0
			if b < a2dFlush {
				b = 0
			}
		}
		r1[e], r2[e], score[e] = a, b, a+a2dSlow*b
	}
	for _, id := range ids {
		r1[id]++
		r2[id]++
		score[id] = r1[id] + a2dSlow*r2[id]
	}
}

func (p *a2d) Insert(layer int, expert int32) { p.insert(layer, expert) }
func (p *a2d) Remove(layer int, expert int32) { p.remove(layer, expert) }

func (p *a2d) Victim(layer int) (victimLayer int, expert int32, ok bool) {
	best, from := math.Inf(1), int32(nobody)
	for _, m := range p.members[p.group[layer]] {
		i := p.least[m]
		if i == unknown {
			i = p.first(int(m))
		}
		if i == nobody {
			continue
		}
		v := p.score[i] * p.discount[turnsUntil(int(m), layer, p.layers)]
		if v > best || (v == best && p.stamp[i] >= p.stamp[from]) { // of equals the longest unused
			continue
		}
		best, from = v, i
	}
	if from == nobody {
		return 0, 0, false
	}
	victimLayer, expert = p.split(from)
	return victimLayer, expert, true
}
