package synth

import (
	"cmp"
	"fmt"
	"math"
)

// How much attention and the feed-forward layers add to the residual stream.
const (
	attnGain = 5.0
	ffnGain  = 3.0
)

// What the variance of the residual stream grows by over all layers, measured
// on models written with these gains.
const (
	localGrowth  = 10.0
	latentGrowth = 1.6
)

// locality is how much higher the attention score of a token for itself is
// than for one ten thousand tokens before it: attention falls as the distance
// to the power of a ninth of it.
const locality = 12.0

// builder lists the tensors and metadata of a model.
type builder struct {
	Spec
	arch    *arch
	quant   *quant
	head    int // width of a head
	heads   int
	headsKV int
	biases  []float64 // of the router, by rank
	keys    keys
	tensors []tensor
}

// build plans the whole model: names, shapes and how bytes are made, no bytes.
func build(s Spec) (*builder, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	q, err := quantByName(s.Type)
	if err != nil {
		return nil, err
	}
	b := &builder{Spec: s, arch: archs[s.Arch], quant: q, head: s.headSize()}
	b.heads = s.Embd / b.head
	b.headsKV = b.heads
	switch {
	case b.arch.ownHeads:
		b.headsKV = 1 // latent attention keeps one row for all its heads
	case !b.arch.allKV && b.heads%4 == 0:
		b.headsKV = b.heads / 4
	}
	b.biases = biases(s.Experts, s.Used, s.Skew)
	b.metadata()
	b.outer()
	for l := range b.blocks() {
		b.layer(l)
	}
	return b, nil
}

// blocks counts the layers and the trailing block, if any.
func (b *builder) blocks() int {
	if b.MTP {
		return b.Layers + 1
	}
	return b.Layers
}

func (b *builder) key(name string) string { return b.Arch + "." + name }

func (b *builder) metadata() {
	k := &b.keys
	k.text("general.architecture", b.Arch)
	k.text("general.name", fmt.Sprintf("synthetic %s %dx%d %s", b.Arch, b.Layers, b.Experts, b.quant.name))
	k.u32("general.file_type", int(b.quant.fileType))
	k.u32("general.quantization_version", 2)
	k.u32("general.alignment", alignment)
	k.u64("bmoe.synth.seed", b.Seed)
	k.f32("bmoe.synth.skew", b.Skew)
	k.u32(b.key("block_count"), b.blocks())
	k.u32(b.key("context_length"), b.Context)
	k.u32(b.key("embedding_length"), b.Embd)
	k.u32(b.key("attention.head_count"), b.heads)
	k.u32(b.key("attention.head_count_kv"), b.headsKV)
	k.f32(b.key("attention.layer_norm_rms_epsilon"), 1e-6)
	k.f32(b.key("rope.freq_base"), 10000)
	k.u32(b.key("expert_count"), b.Experts)
	k.u32(b.key("expert_used_count"), b.Used)
	if b.Groups > 1 {
		k.u32(b.key("expert_group_count"), b.Groups)
		k.u32(b.key("expert_group_used_count"), b.GroupsUsed)
	}
	if b.MTP {
		k.u32(b.key("nextn_predict_layers"), 1)
	}
	b.arch.keys(b)
	if !b.arch.ownHeads {
		k.u32(b.key("attention.key_length"), b.head)
		k.u32(b.key("attention.value_length"), b.head)
		k.u32(b.key("rope.dimension_count"), b.head)
	}
	k.u32(b.key("vocab_size"), b.Vocab)
	makeVocab(b.Vocab).write(k)
}

// outer adds what is not in a layer.
func (b *builder) outer() {
	q := b.dense8()
	b.add("token_embd.weight", q, b.embedding(q), int64(b.Embd), int64(b.Vocab))
	if !b.TiedHead {
		// Control and byte tokens get no logit, so that text is made of words.
		q := b.denseQuant()
		src := b.random("output.weight", q, 2.5*b.unit())
		src.zeroed = firstWord * q.rowBytes(int64(b.Embd))
		b.add("output.weight", q, src, int64(b.Embd), int64(b.Vocab))
		b.norm("output_norm.weight", int64(b.Embd), b.patternWidth())
		return
	}
	// Were its signs all alike, a tied head would always repeat the token.
	b.values("output_norm.weight", func(i int, r *rng) float64 {
		if z := 0.1 * float64(1-2*r.intn(2)); i >= b.patternWidth() {
			return z
		}
		return 0
	}, int64(b.Embd))
}

func (b *builder) layer(l int) {
	p := blk(l)
	hidden := 0
	if b.arch.ownHeads {
		hidden = b.patternWidth() // attention of its own kind has no use for the pattern
	}
	b.norm(p+"attn_norm.weight", int64(b.Embd), hidden)
	b.arch.attn(b, l)
	b.norm(p+cmp.Or(b.arch.norm, "ffn_norm")+".weight", int64(b.Embd), 0)
	b.arch.ffn(b, l)
}

// experts adds the router and the routed experts of a layer.
func (b *builder) experts(l int) {
	p := blk(l)
	d, f, e := int64(b.Embd), int64(b.FF), int64(b.Experts)
	router := p + "ffn_gate_inp.weight"
	b.add(router, quants["f32"], b.router(router, l), d, e)
	if b.arch.biased {
		b.vector(p+"ffn_gate_inp.bias", 0.05, e)
	}
	in, out := b.expertTypes(l)
	if b.FusedGateUp {
		b.expert(p+"ffn_gate_up_exps", in, b.unit(), d, 2*f, e)
	} else {
		b.expert(p+"ffn_gate_exps", in, b.unit(), d, f, e)
		b.expert(p+"ffn_up_exps", in, b.unit(), d, f, e)
	}
	b.expert(p+"ffn_down_exps", out, ffnGain*b.gain()*over(f), f, d, e)
}

// expert adds one expert tensor and, where wanted, its scales.
func (b *builder) expert(name string, q *quant, sigma float64, dims ...int64) {
	if b.Scaled {
		b.around(name+".scale", 1, 0.2, dims[2])
	}
	if b.arch.biased {
		b.vector(name+".bias", 0.02, dims[1], dims[2])
	}
	b.add(name+".weight", q, b.random(name+".weight", q, sigma), dims...)
}

// expertTypes are the types of a layer's gate and up, and of its down.
func (b *builder) expertTypes(l int) (in, out *quant) {
	other := quants[b.quant.partner]
	switch {
	case b.Mixed && l%3 == 1:
		return b.quant, other
	case b.Mixed && l%3 == 2:
		return other, other
	}
	return b.quant, b.quant
}

// dense adds a feed-forward layer without experts.
func (b *builder) dense(prefix, suffix string, f int64) {
	d := int64(b.Embd)
	b.weight(prefix+"ffn_gate"+suffix+".weight", b.unit(), d, f)
	b.weight(prefix+"ffn_up"+suffix+".weight", b.unit(), d, f)
	b.weight(prefix+"ffn_down"+suffix+".weight", b.gain()*over(f), f, d)
}

// unit is the spread of weights that keeps a vector of the stream's width at
// its size.
func (b *builder) unit() float64 { return over(int64(b.Embd)) }

func over(n int64) float64 { return 1 / math.Sqrt(float64(n)) }

func (b *builder) add(name string, q *quant, src source, dims ...int64) {
	b.tensors = append(b.tensors, tensor{name: name, dims: dims, quant: q, src: src})
}

func (b *builder) random(name string, q *quant, sigma float64) *randomSource {
	return &randomSource{seed: b.Seed, name: name, quant: q, mend: q.prepare(sigma, q.spread)}
}

// denseQuant is the type of weights that are not routed experts.
func (b *builder) denseQuant() *quant {
	if b.quant.expertsOnly {
		return quants["q8_0"]
	}
	return b.quant
}

// dense8 is the same, or 8 bits where given values could not be written.
func (b *builder) dense8() *quant {
	if b.quant.encode == nil {
		return quants["q8_0"]
	}
	return b.quant
}

// weight adds a random matrix of the model's type, or of one that fits its rows.
func (b *builder) weight(name string, sigma float64, dims ...int64) {
	q := b.denseQuant()
	for _, other := range []string{"q8_0", "f16"} {
		if dims[0]%int64(q.block) != 0 {
			q = quants[other]
		}
	}
	b.add(name, q, b.random(name, q, sigma), dims...)
}

// vector adds random values about zero, in full precision.
func (b *builder) vector(name string, sigma float64, dims ...int64) {
	b.around(name, 0, sigma, dims...)
}

// norm adds weights of a norm, about one, the first zeroed of them zero.
func (b *builder) norm(name string, n int64, zeroed int) {
	b.values(name, func(i int, r *rng) float64 {
		if z := r.gauss(); i >= zeroed {
			return 1 + 0.05*z
		}
		return 0
	}, n)
}

func (b *builder) around(name string, mean, sigma float64, dims ...int64) {
	b.values(name, func(_ int, r *rng) float64 { return mean + sigma*r.gauss() }, dims...)
}

func (b *builder) values(name string, value func(i int, r *rng) float64, dims ...int64) {
	src := &rowSource{quant: quants["f32"], columns: dims[0], row: func(dst []float32, row int) {
		r := newRNG(b.Seed, name, row)
		for i := range dst {
			dst[i] = float32(value(i, &r))
		}
	}}
	b.add(name, quants["f32"], src, dims...)
}
