package cachepolicy

import "math"

// Constants of the A2D score, chosen by replay over many configurations;
// changing any one of them moves the hit rate by at most 0.7 points.
const (
	a2dFast  = 1    // turns in which the fast count halves
	a2dSlow  = 24   // turns in which the slow count halves
	a2dShare = 0.15 // weight of the slow count in the score
	a2dAlign = 0.5  // exponent of the discount over a whole cycle of layers
	a2dPrior = 0.1  // weight of a prompt's shares
)

// halved is what is left of a count by turns, until nothing is that a score
// could tell.
func halved(halving int) []float64 {
	left := make([]float64, 64*halving)
	for turns := range left {
		left[turns] = math.Exp2(-float64(turns) / float64(halving))
	}
	return left
}

// a2d scores every (layer, expert), resident or not, by two decayed counts of
// its selections, a fast and a slow one, which decay only on the layer's own
// turn (the alignment). A miss gives up the group's resident with the smallest
// score, discounted by how far away its layer's turn is: bytes needed soon are
// worth more than bytes needed late in the cycle.
//
// A count is written down with the turn it was true at and decays when it is
// read, so a turn costs what was selected, not all that could have been.
type a2d struct {
	ranked
	uses     []uses    // by entry
	turns    []int32   // layer -> its decode turns
	scored   []int32   // layer -> the turn its residents' scores are of, -1 for none
	fastLeft []float64 // of a fast count, by turns
	slowLeft []float64 // of a slow one
	discount []float64 // by turns until the victim's layer
}

// uses are an expert's two counts as they were at a turn of its layer.
type uses struct {
	fast, slow float64
	turn       int32
}

func newA2D(base state) *a2d {
	p := &a2d{
		ranked: newRanked(base), uses: make([]uses, base.layers*base.experts),
		turns: make([]int32, base.layers), scored: make([]int32, base.layers),
		fastLeft: halved(a2dFast), slowLeft: halved(a2dSlow), discount: make([]float64, base.layers),
	}
	for d := range p.discount {
		p.discount[d] = math.Exp2(-a2dAlign * float64(d) / float64(base.layers))
	}
	return p
}

func (p *a2d) Name() string { return A2D }

func (p *a2d) Touch(layer int, ids, counts []int32, tokens int, prompt bool) {
	p.begin(layer, ids)
	p.scored[layer] = -1
	base := layer * p.experts
	if !prompt {
		p.turns[layer]++
		for _, id := range ids {
			u := p.now(base + int(id))
			p.uses[base+int(id)] = uses{u.fast + 1, u.slow + 1, u.turn}
		}
		return
	}
	// The shares of a prompt count as if they had been the steady state of both
	// counts, scaled by the prior. Nothing decays.
	for n, id := range ids {
		share := a2dPrior * float64(counts[n]) / float64(max(tokens, 1))
		u := p.now(base + int(id))
		p.uses[base+int(id)] = uses{u.fast + share/(1-p.fastLeft[1]), u.slow + share/(1-p.slowLeft[1]), u.turn}
	}
}

// now returns an entry's counts as of its layer's latest turn.
func (p *a2d) now(i int) uses {
	u, turn := p.uses[i], p.turns[i/p.experts]
	age := int(turn - u.turn)
	u.fast *= p.fastLeft[min(age, len(p.fastLeft)-1)]
	u.slow *= p.slowLeft[min(age, len(p.slowLeft)-1)]
	u.turn = turn
	return u
}

// rescore brings the scores of a layer's residents up to its latest turn.
func (p *a2d) rescore(layer int) {
	if p.scored[layer] == p.turns[layer] {
		return
	}
	for _, i := range p.held[layer] {
		p.score[i] = p.worth(i)
	}
	p.scored[layer] = p.turns[layer]
}

func (p *a2d) worth(i int32) float64 {
	u := p.now(int(i))
	return u.fast + a2dShare*u.slow
}

func (p *a2d) Insert(layer int, expert int32) {
	if p.insert(layer, expert) {
		i := p.index(layer, expert)
		p.score[i] = p.worth(i)
	}
}

func (p *a2d) Remove(layer int, expert int32) { p.remove(layer, expert) }

func (p *a2d) Yield(layer int, incoming int32) (expert int32, ok bool) {
	i := p.index(layer, incoming)
	p.score[i] = p.worth(i)
	p.rescore(layer)
	return p.ranked.Yield(layer, incoming)
}

func (p *a2d) Victim(layer int) (victimLayer int, expert int32, ok bool) {
	best, from := math.Inf(1), int32(nobody)
	for _, m := range p.members[p.group[layer]] {
		i := p.least[m]
		if i == unknown {
			p.rescore(int(m))
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
