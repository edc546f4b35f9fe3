package stream

import (
	"fmt"
	"slices"
)

// defaultGroupSlots bounds an arena's slots. The CPU's expert matmul clears
// and scans state for every slot of its tensor, about 14 ns each, so a few
// small arenas beat one large one; a few hundred slots still leave the policy
// many layers to choose its victims from.
const defaultGroupSlots = 256

// group is an arena's shape: layers that share slots. All its layers have the
// same slice sizes.
type group struct {
	layers    []int
	slots     int
	most      int            // slots it may grow to: more than slots where sizes compete
	proj      []int          // projections present
	stride    [numProj]int64 // bytes from slot to slot
	slotBytes int64          // of all projections together
}

// geometry is how the budget is laid out.
type geometry struct {
	align    int64
	groups   []group
	groupOf  []int // by layer; layers without experts share group 0
	minSlots int   // of the smallest group
	tensors  [][numProj]*Tensor
	wide     [numProj]int64 // largest stride of each projection, for prefill slots
}

// budget is what the arenas hold when full.
func (g *geometry) budget() int64 {
	var n int64
	for i := range g.groups {
		n += int64(g.groups[i].slots) * g.groups[i].slotBytes
	}
	return n
}

// phase is how far into a slot a tensor's slices begin, so that the aligned
// read that contains a slice can land in the slot itself. Slices that are read
// aside, because they are no multiple of the alignment and so have no common
// phase or because they are repacked, begin with the slot.
func (g *geometry) phase(t *Tensor) int64 {
	if g.aside(t) {
		return 0
	}
	return t.Offset % g.align
}

// aside reports whether a tensor's slices are read into a lane's own buffer
// first and moved from there.
func (g *geometry) aside(t *Tensor) bool { return t.Repack != nil || t.Slice%g.align != 0 }

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// strideOf is the slot size a slice needs.
func (g *geometry) strideOf(t *Tensor) int64 {
	if g.aside(t) {
		return roundUp(t.Slice, 64)
	}
	if g.phase(t) == 0 {
		return t.Slice
	}
	return t.Slice + g.align
}

// layout divides the budget: layers of equal slice sizes form a class, a class
// gets its share of the budget, and is cut into groups of few slots.
func layout(cfg *Config, align int64) (*geometry, error) {
	g := &geometry{align: align, groupOf: make([]int, cfg.Layers), tensors: make([][numProj]*Tensor, cfg.Layers)}
	for i := range cfg.Tensors {
		t := &cfg.Tensors[i]
		if t.Layer < 0 || t.Layer >= cfg.Layers || t.Slice <= 0 || g.tensors[t.Layer][t.Proj] != nil {
			return nil, fmt.Errorf("layer %d: impossible expert tensor %s", t.Layer, projNames[t.Proj])
		}
		g.tensors[t.Layer][t.Proj] = t
	}
	classes := g.classes()
	if len(classes) == 0 {
		return nil, fmt.Errorf("the model has no routed experts: nothing to stream")
	}
	var total int64
	for _, c := range classes {
		total += int64(len(c.layers)) * int64(cfg.Experts) * c.slotBytes
	}
	for _, c := range classes {
		share := float64(len(c.layers)) * float64(cfg.Experts) * float64(c.slotBytes) / float64(total)
		g.cut(c, int64(share*float64(cfg.BudgetBytes)), cfg)
	}
	if len(classes) > 1 {
		for i := range g.groups {
			g.groups[i].most = len(g.groups[i].layers) * cfg.Experts
		}
	}
	return g, nil
}

// classes collects the layers by their slot's shape.
func (g *geometry) classes() []group {
	var out []group
	for l := range g.tensors {
		c := group{layers: []int{l}}
		for p, t := range g.tensors[l] {
			if t == nil {
				continue
			}
			c.proj = append(c.proj, p)
			// A page of phase is budgeted for every tensor of a class, or
			// layers of one shape would fall apart by where they lie.
			c.stride[p] = t.Slice
			if g.aside(t) {
				c.stride[p] = roundUp(t.Slice, 64)
			}
		}
		if len(c.proj) == 0 {
			continue
		}
		i := slices.IndexFunc(out, func(o group) bool { return o.stride == c.stride })
		if i < 0 {
			out = append(out, c)
		} else {
			out[i].layers = append(out[i].layers, l)
		}
	}
	for i := range out {
		g.widen(&out[i])
	}
	return out
}

// widen sets a class's true strides, phases included.
func (g *geometry) widen(c *group) {
	c.slotBytes = 0
	for _, p := range c.proj {
		c.stride[p] = 0
		for _, l := range c.layers {
			c.stride[p] = max(c.stride[p], g.strideOf(g.tensors[l][p]))
		}
		c.slotBytes += c.stride[p]
		g.wide[p] = max(g.wide[p], roundUp(c.stride[p], max(g.align, 64)))
	}
}

// cut divides a class into groups that share its slots evenly. Layers are dealt
// round: a group's layers then take their turns spread over the token.
func (g *geometry) cut(c group, budget int64, cfg *Config) {
	slots := int(min(budget/c.slotBytes, int64(len(c.layers)*cfg.Experts)))
	slots = max(slots, min(cfg.Used, cfg.Experts))
	most := cfg.GroupSlots
	if most == 0 {
		most = max(defaultGroupSlots, cfg.Experts)
	}
	n := min((slots+most-1)/most, len(c.layers))
	for n > 1 && slots/n < cfg.Used {
		n--
	}
	if slots == len(c.layers)*cfg.Experts {
		n = len(c.layers) // everything is held: an arena a layer, as narrow as the model's own
	}
	first := len(g.groups)
	for i := range n {
		gr := c
		gr.layers = nil
		gr.slots = slots / n
		if i < slots%n {
			gr.slots++
		}
		g.groups = append(g.groups, gr)
	}
	for i, l := range c.layers {
		k := first + i%n
		g.groupOf[l] = k
		g.groups[k].layers = append(g.groups[k].layers, l)
	}
	for i := first; i < len(g.groups); i++ {
		gr := &g.groups[i]
		gr.slots = min(gr.slots, len(gr.layers)*cfg.Experts)
		gr.most = gr.slots
		if g.minSlots == 0 || gr.slots < g.minSlots {
			g.minSlots = gr.slots
		}
	}
}
