package synth

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Upcycle is how to make a Mixture-of-Experts model of a llama2.c checkpoint.
// Every expert is the dense feed-forward layer with its hidden units in another
// order, each unit's up row scaled by a signed power of two and its down column
// by the inverse, which leaves its function as it was, and then noise. The
// weights of the experts used sum to one, so that without noise the model is
// the dense one whatever the router picks, and yet no two experts have the same
// bytes.
type Upcycle struct {
	Weights, Tokenizer string
	Experts, Used      int
	Type               string
	Noise              float64 // standard deviation of the noise, relative to each weight
	Seed               uint64
	Embd               int // width to pad the residual stream to; 0: as it is
	FF                 int // width to pad an expert to; 0: to whole blocks
	Shards             int
}

// Check says what is wrong with the specification, as far as it can be said
// without reading the checkpoint.
func (u Upcycle) Check() error {
	q, err := quantByName(u.Type)
	switch {
	case err != nil:
		return fmt.Errorf("--type: %w", err)
	case q.encode == nil:
		return fmt.Errorf("--type %s: --from-llama2c writes f32, f16, q8_0 and q4_0", u.Type)
	case u.Experts < 1 || u.Experts > maxExperts:
		return fmt.Errorf("--experts %d: must be 1 to %d", u.Experts, maxExperts)
	case u.Used < 1 || u.Used > u.Experts:
		return fmt.Errorf("--experts-used %d: must be 1 to %d", u.Used, u.Experts)
	case !(u.Noise >= 0 && u.Noise <= 10):
		return fmt.Errorf("--noise %g: must be 0 to 10", u.Noise)
	case u.Shards < 1 || u.Shards > maxShards:
		return fmt.Errorf("--shards %d: must be 1 to %d", u.Shards, maxShards)
	}
	return nil
}

// WriteUpcycled makes the model at path; see Write.
func WriteUpcycled(ctx context.Context, path string, u Upcycle, o Options) (Summary, error) {
	if err := u.Check(); err != nil {
		return Summary{}, err
	}
	c, err := readCheckpoint(u.Weights, u.Tokenizer)
	if err != nil {
		return Summary{}, err
	}
	b, err := u.build(c)
	if err != nil {
		return Summary{}, err
	}
	return b.write(ctx, path, o)
}

// upcycler lists the tensors of an upcycled model.
type upcycler struct {
	*builder
	*checkpoint
	noise float64
	width int // of the residual stream, padded
	ff    int // of an expert, padded
}

func (u Upcycle) build(c *checkpoint) (*builder, error) {
	q, err := quantByName(u.Type)
	if err != nil {
		return nil, err
	}
	up := &upcycler{checkpoint: c, noise: u.Noise, width: max(u.Embd, c.dim), ff: u.FF}
	if up.ff == 0 {
		up.ff = (c.hidden + q.block - 1) / q.block * q.block
	}
	switch {
	case u.Embd != 0 && u.Embd < c.dim:
		return nil, fmt.Errorf("--embd %d: the weights have %d; it can only be widened", u.Embd, c.dim)
	case up.ff < c.hidden:
		return nil, fmt.Errorf("--ff %d: the weights have %d; it can only be widened", up.ff, c.hidden)
	case up.width%q.block != 0 || up.ff%q.block != 0 || c.dim%q.block != 0:
		return nil, fmt.Errorf("--type %s needs widths that are multiples of %d: the weights have %d, with --embd %d and --ff %d", q.name, q.block, c.dim, up.width, up.ff)
	case float64(up.width)*float64(up.ff)*float64(u.Experts)*float64(c.layers) > maxSize:
		return nil, errors.New("the model would have more than 16 million million expert weights; lower --experts, --embd or --ff")
	}
	up.builder = &builder{quant: q, Spec: Spec{
		Arch: "llama", Layers: c.layers, Experts: u.Experts, Used: u.Used,
		Embd: up.width, FF: up.ff, Type: q.name, Seed: u.Seed, Shards: u.Shards, Vocab: c.vocab, Context: c.context,
	}}
	up.metadata()
	up.outer()
	for l := range c.layers {
		up.attention(l)
		up.feedForward(l)
	}
	return up.builder, nil
}

func (u *upcycler) metadata() {
	k, c := &u.keys, u.checkpoint
	k.text("general.architecture", "llama")
	k.text("general.name", fmt.Sprintf("upcycled %dx%d %s", c.layers, u.Experts, u.quant.name))
	k.u32("general.file_type", int(u.quant.fileType))
	k.u32("general.quantization_version", 2)
	k.u32("general.alignment", alignment)
	k.u64("bmoe.synth.seed", u.Seed)
	k.f32("bmoe.synth.noise", u.noise)
	k.u32("llama.block_count", c.layers)
	k.u32("llama.context_length", c.context)
	k.u32("llama.embedding_length", u.width)
	k.u32("llama.feed_forward_length", u.ff)
	k.u32("llama.attention.head_count", c.heads)
	k.u32("llama.attention.head_count_kv", c.headsKV)
	k.u32("llama.attention.key_length", c.headSize())
	k.u32("llama.attention.value_length", c.headSize())
	k.u32("llama.rope.dimension_count", c.headSize())
	k.f32("llama.rope.freq_base", 10000)
	// The mean of squares is taken over the padding too: see norm.
	k.f32("llama.attention.layer_norm_rms_epsilon", 1e-5*float64(c.dim)/float64(u.width))
	k.u32("llama.expert_count", u.Experts)
	k.u32("llama.expert_used_count", u.Used)
	k.u32("llama.vocab_size", c.vocab)
	c.writeTokens(k)
}

func (u *upcycler) outer() {
	u.matrix("token_embd.weight", u.embedding, u.vocab, u.dim, u.width, u.vocab)
	if !u.tiedHead {
		u.matrix("output.weight", u.checkpoint.head, u.vocab, u.dim, u.width, u.vocab)
	}
	u.norm("output_norm.weight", u.normOut)
}

func (u *upcycler) attention(l int) {
	p, d, kv := blk(l), u.dim, u.kv()
	u.norm(p+"attn_norm.weight", u.normAttn[l*d:][:d])
	u.matrix(p+"attn_q.weight", u.wq[l*d*d:], d, d, u.width, d)
	u.matrix(p+"attn_k.weight", u.wk[l*kv*d:], kv, d, u.width, kv)
	u.matrix(p+"attn_v.weight", u.wv[l*kv*d:], kv, d, u.width, kv)
	u.matrix(p+"attn_output.weight", u.wo[l*d*d:], d, d, d, u.width)
	u.norm(p+"ffn_norm.weight", u.normFF[l*d:][:d])
}

// unitOf is where an expert's hidden unit comes from and its scale.
type unitOf struct {
	from  int
	scale float32
}

func (u *upcycler) feedForward(l int) {
	p, d, h := blk(l), u.dim, u.hidden
	u.add(p+"ffn_gate_inp.weight", quants["f32"], u.upcycledRouter(p), int64(u.width), int64(u.Experts))
	units := make([][]unitOf, u.Experts)
	for e := range units {
		units[e] = u.order(p, e)
	}
	gate, up, down := u.gate[l*h*d:], u.up[l*h*d:], u.down[l*h*d:]
	in := func(m []float32, scaled bool) func([]float32, int, *rng) {
		return func(dst []float32, row int, r *rng) {
			j := row % u.ff
			if j >= h {
				return
			}
			unit := units[row/u.ff][j]
			for i, v := range m[unit.from*d:][:d] {
				if scaled {
					v *= unit.scale
				}
				dst[i] = u.noisy(v, r)
			}
		}
	}
	u.expertRows(p+"ffn_gate_exps.weight", in(gate, false), u.width, u.ff)
	u.expertRows(p+"ffn_up_exps.weight", in(up, true), u.width, u.ff)
	u.expertRows(p+"ffn_down_exps.weight", func(dst []float32, row int, r *rng) {
		if i := row % u.width; i < d {
			for j, unit := range units[row/u.width] {
				dst[j] = u.noisy(down[i*h+unit.from]/unit.scale, r)
			}
		}
	}, u.ff, u.width)
}

func (u *upcycler) upcycledRouter(prefix string) source {
	sigma := 2 / math.Sqrt(float64(u.dim))
	return &rowSource{quant: quants["f32"], columns: int64(u.width), row: func(dst []float32, e int) {
		r := newRNG(u.Seed, prefix+"router", e)
		for i := range u.dim {
			dst[i] = float32(sigma * r.gauss())
		}
	}}
}

// order deals the hidden units out to one expert.
func (u *upcycler) order(prefix string, expert int) []unitOf {
	r := newRNG(u.Seed, prefix+"order", expert)
	perm := make([]int, u.hidden)
	for i := range perm {
		perm[i] = i
	}
	r.shuffle(perm)
	out := make([]unitOf, u.hidden)
	for i, from := range perm {
		out[i] = unitOf{from, []float32{0.5, 1, 2, -0.5, -1, -2}[r.intn(6)]}
	}
	return out
}

func (u *upcycler) noisy(v float32, r *rng) float32 {
	if u.noise == 0 {
		return v
	}
	return v * float32(1+u.noise*r.gauss())
}

// expertRows adds one expert tensor of given rows.
func (u *upcycler) expertRows(name string, row func([]float32, int, *rng), columns, rows int) {
	src := &rowSource{quant: u.quant, columns: int64(columns), row: func(dst []float32, i int) {
		r := newRNG(u.Seed, name, i)
		row(dst, i, &r)
	}}
	u.add(name, u.quant, src, int64(columns), int64(rows), int64(u.Experts))
}

// matrix adds m of rows x columns, padded with zeros.
func (u *upcycler) matrix(name string, m []float32, rows, columns, toColumns, toRows int) {
	src := &rowSource{quant: u.quant, columns: int64(toColumns), row: func(dst []float32, i int) {
		if i < rows {
			copy(dst, m[i*columns:][:columns])
		}
	}}
	u.add(name, u.quant, src, int64(toColumns), int64(toRows))
}

// norm adds weights that make up for the padding, over which the norm's mean
// of squares is taken too.
func (u *upcycler) norm(name string, m []float32) {
	shrink := float32(math.Sqrt(float64(u.dim) / float64(u.width)))
	src := &rowSource{quant: quants["f32"], columns: int64(u.width), row: func(dst []float32, _ int) {
		for i, v := range m {
			dst[i] = v * shrink
		}
	}}
	u.add(name, quants["f32"], src, int64(u.width))
}
