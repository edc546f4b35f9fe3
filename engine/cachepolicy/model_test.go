package cachepolicy

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

type key struct {
	layer  int
	expert int32
}

// use is one batch an expert was part of.
type use struct {
	turn    int // the layer's decode turns up to and including this batch
	share   float64
	prompt  bool
	ordinal int // over all layers
}

// naive holds the whole history and derives everything from it.
type naive struct {
	layers   int
	group    []int
	resident map[key]bool
	pins     map[key]int
	batch    map[key]bool
	uses     map[key][]use
	turns    []int
	ordinal  int
}

func newNaive(layers int, group []int) *naive {
	return &naive{
		layers: layers, group: group, turns: make([]int, layers),
		resident: map[key]bool{}, pins: map[key]int{}, batch: map[key]bool{}, uses: map[key][]use{},
	}
}

func (n *naive) touch(layer int, ids, counts []int32, tokens int, prompt bool) {
	if !prompt {
		n.turns[layer]++
	}
	clear(n.batch)
	for i, id := range ids {
		k := key{layer, id}
		n.ordinal++
		n.batch[k] = true
		n.uses[k] = append(n.uses[k], use{n.turns[layer], float64(counts[i]) / float64(tokens), prompt, n.ordinal})
	}
}

func (n *naive) last(k key) int {
	u := n.uses[k]
	if len(u) == 0 {
		return 0
	}
	return u[len(u)-1].ordinal
}

func (n *naive) frequency(k key) int { return len(n.uses[k]) }

// a2dScore is the sum over all uses of both decayed weights.
func (n *naive) a2dScore(k key) float64 {
	var s float64
	for _, u := range n.uses[k] {
		age := float64(n.turns[k.layer] - u.turn)
		fast, slow := 1.0, 1.0
		if u.prompt {
			fast, slow = 0.1*u.share/0.5, 0.1*u.share/(1-math.Pow(2, -1.0/24))
		}
		s += fast*math.Pow(2, -age) + 0.15*slow*math.Pow(2, -age/24)
	}
	return s
}

func (n *naive) a2dWorth(k key, layer int) float64 {
	d := ((k.layer-layer-1)%n.layers + n.layers) % n.layers
	return n.a2dScore(k) * math.Pow(2, -0.5*float64(d)/float64(n.layers))
}

func (n *naive) candidates(layer int) []key {
	var out []key
	for k := range n.resident {
		if n.group[k.layer] == n.group[layer] && !n.batch[k] && n.pins[k] == 0 {
			out = append(out, k)
		}
	}
	return out
}

// worst checks a victim against the definition of the policy.
func (n *naive) worst(t *rapid.T, name string, layer int, got key) {
	cands := n.candidates(layer)
	switch name {
	case LayerLRU, LayerLFU:
		cands = n.shareOf(layer, cands)
	}
	found := false
	for _, c := range cands {
		found = found || c == got
		bad := false
		switch name {
		case A2D:
			bad = n.a2dWorth(c, layer) < n.a2dWorth(got, layer)*(1-1e-9)
		case LRU, LayerLRU:
			bad = n.last(c) < n.last(got)
		case LayerLFU:
			bad = n.frequency(c) < n.frequency(got) || (n.frequency(c) == n.frequency(got) && n.last(c) < n.last(got))
		}
		if bad {
			t.Fatalf("%s: victim of layer %d is %v, but %v is worth less", name, layer, got, c)
		}
	}
	if !found {
		t.Fatalf("%s: victim %v of layer %d is not among the candidates %v", name, got, layer, cands)
	}
}

// shareOf narrows candidates to the layer the fair share points at.
func (n *naive) shareOf(layer int, cands []key) []key {
	held, total, members := map[int]int{}, 0, 0
	for k := range n.resident {
		if n.group[k.layer] == n.group[layer] {
			held[k.layer]++
			total++
		}
	}
	for _, g := range n.group {
		if g == n.group[layer] {
			members++
		}
	}
	pick := func(l int) (out []key) {
		for _, c := range cands {
			if c.layer == l {
				out = append(out, c)
			}
		}
		return out
	}
	if own := pick(layer); held[layer]*members >= total && len(own) > 0 {
		return own
	}
	best, rank := -1, -1
	for l := range n.layers {
		away := ((l-layer-1)%n.layers + n.layers) % n.layers
		if r := held[l]*n.layers + away; len(pick(l)) > 0 && r > rank {
			best, rank = l, r
		}
	}
	return pick(best)
}

func TestVictimAgainstNaiveModel(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkModel(t, name) })
		})
	}
}

func checkModel(t *rapid.T, name string) {
	layers, experts := rapid.IntRange(1, 5).Draw(t, "layers"), rapid.IntRange(1, 12).Draw(t, "experts")
	groups := rapid.SliceOfN(rapid.IntRange(0, min(1, layers-1)), layers, layers).Draw(t, "groups")
	p, err := New(name, layers, experts, groups)
	if err != nil {
		t.Fatal(err)
	}
	m := newNaive(layers, groups)
	room := rapid.IntRange(1, layers*experts).Draw(t, "room")
	collector := NewCollector(experts)
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		layer := rapid.IntRange(0, layers-1).Draw(t, "layer")
		switch rapid.IntRange(0, 9).Draw(t, "op") {
		case 0:
			k := key{layer, int32(rapid.IntRange(0, experts-1).Draw(t, "pin"))}
			p.Pin(k.layer, k.expert)
			m.pins[k]++
		case 1:
			for k, n := range m.pins {
				if n > 0 {
					p.Unpin(k.layer, k.expert)
					m.pins[k]--
				}
			}
		case 2:
			p.Release()
			clear(m.batch)
		default:
			picks := rapid.SliceOfN(rapid.Int32Range(0, int32(experts-1)), 1, 8).Draw(t, "picks")
			ids, counts := collector.Distinct(picks)
			prompt := rapid.Bool().Draw(t, "prompt")
			p.Touch(layer, ids, counts, len(picks), prompt)
			m.touch(layer, ids, counts, len(picks), prompt)
			serve(t, p, m, layer, ids, room)
		}
		ask(t, p, m, layer)
	}
}

// serve makes every id resident that finds room, as an engine would.
func serve(t *rapid.T, p Policy, m *naive, layer int, ids []int32, room int) {
	for _, id := range ids {
		k := key{layer, id}
		if p.Resident(layer, id) != m.resident[k] {
			t.Fatalf("%v: resident %v, model says %v", k, p.Resident(layer, id), m.resident[k])
		}
		if m.resident[k] {
			continue
		}
		for len(m.resident) >= room {
			v, ok := ask(t, p, m, layer)
			if !ok {
				v.expert, ok = p.Yield(layer, id)
				v.layer = layer
				checkYield(t, p.Name(), m, k, v, ok)
			}
			if !ok {
				break
			}
			p.Remove(v.layer, v.expert)
			delete(m.resident, v)
		}
		if len(m.resident) < room {
			p.Insert(layer, id)
			m.resident[k] = true
		}
	}
}

func ask(t *rapid.T, p Policy, m *naive, layer int) (key, bool) {
	l, e, ok := p.Victim(layer)
	if want := len(m.candidates(layer)) > 0; ok != want {
		t.Fatalf("victim of layer %d found: %v, model says %v", layer, ok, want)
	}
	if ok {
		m.worst(t, p.Name(), layer, key{l, e})
	}
	return key{l, e}, ok
}

// checkYield: the batch's own least resident, and only if worth less.
func checkYield(t *rapid.T, name string, m *naive, incoming, got key, ok bool) {
	worth := func(k key) float64 {
		switch name {
		case A2D:
			return m.a2dScore(k)
		case LayerLFU:
			return float64(m.frequency(k))
		}
		return float64(m.last(k))
	}
	if ok && (!m.batch[got] || !m.resident[got] || m.pins[got] > 0) {
		t.Fatalf("yielded %v, which is not a free resident of the batch", got)
	}
	if ok && worth(got) > worth(incoming)*(1+1e-9) {
		t.Fatalf("yielded %v, worth more than the incoming %v", got, incoming)
	}
	for k := range m.batch {
		if m.resident[k] && m.pins[k] == 0 && k.layer == incoming.layer && !ok && worth(k) < worth(incoming)*(1-1e-9) {
			t.Fatalf("declined to yield for %v, but %v is worth less", incoming, k)
		}
	}
}
