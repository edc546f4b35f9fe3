package synth

// Architectures in the manner of DeepSeek: attention over a compressed latent,
// leading dense layers, a shared expert, sigmoid routing with a correction per
// expert, and a trailing block for multi-token prediction.

// latent is the sizes of latent attention.
type latent struct {
	query, kv  int64 // ranks
	rope, nope int64 // of a head, with and without positions
}

func (b *builder) latent() latent {
	rank := int64(max(64, b.Embd/4/32*32))
	return latent{query: rank, kv: rank, rope: 32, nope: int64(b.head)}
}

// lite says that llama.cpp, going by the number of layers, reads the queries
// from one matrix instead of two.
func (b *builder) lite() bool { return b.Layers == 26 || b.Layers == 27 }

const (
	gatingSigmoid = 2
	weightsScale  = 1.5
	// This attention does not fall with distance. What it adds is mostly what
	// all tokens share, and much of it would make routing the same for all.
	latentGain = 0.7
)

func keysDeepseek(b *builder) {
	m := b.latent()
	keysExpertFF(b)
	b.keys.u32(b.key("leading_dense_block_count"), b.DenseLead)
	b.keys.u32(b.key("expert_shared_count"), 1)
	b.keys.f32(b.key("expert_weights_scale"), weightsScale)
	b.keys.boolean(b.key("expert_weights_norm"), true)
	b.keys.u32(b.key("expert_gating_func"), gatingSigmoid)
	if !b.lite() {
		b.keys.u32(b.key("attention.q_lora_rank"), int(m.query))
	}
	b.keys.u32(b.key("attention.kv_lora_rank"), int(m.kv))
	b.keys.u32(b.key("attention.key_length"), int(m.kv+m.rope))
	b.keys.u32(b.key("attention.value_length"), int(m.kv))
	b.keys.u32(b.key("attention.key_length_mla"), int(m.nope+m.rope))
	b.keys.u32(b.key("attention.value_length_mla"), int(m.nope))
	b.keys.u32(b.key("rope.dimension_count"), int(m.rope))
}

func attnLatent(b *builder, layer int) {
	p, m := blk(layer), b.latent()
	d, h := int64(b.Embd), int64(b.heads)
	if b.lite() {
		b.weight(p+"attn_q.weight", b.unit(), d, h*(m.nope+m.rope))
	} else {
		b.weight(p+"attn_q_a.weight", b.unit(), d, m.query)
		b.norm(p+"attn_q_a_norm.weight", m.query, 0)
		b.weight(p+"attn_q_b.weight", over(m.query), m.query, h*(m.nope+m.rope))
	}
	b.weight(p+"attn_kv_a_mqa.weight", b.unit(), d, m.kv+m.rope)
	b.norm(p+"attn_kv_a_norm.weight", m.kv, 0)
	b.weight(p+"attn_k_b.weight", over(m.kv), m.nope, m.kv, h)
	b.weight(p+"attn_v_b.weight", over(m.kv), m.kv, m.nope, h)
	b.weight(p+"attn_output.weight", latentGain*b.gain()*over(h*m.nope), h*m.nope, d)
}

func ffnDeepseek(b *builder, layer int) {
	p := blk(layer)
	if layer < b.DenseLead {
		b.dense(p, "", int64(b.FF*b.Used))
		return
	}
	b.vector(p+"exp_probs_b.bias", 0.02, int64(b.Experts))
	b.experts(layer)
	b.dense(p, "_shexp", int64(b.FF))
	if layer == b.Layers {
		d := int64(b.Embd)
		b.weight(p+"nextn.eh_proj.weight", b.unit(), 2*d, d)
		b.norm(p+"nextn.enorm.weight", d, 0)
		b.norm(p+"nextn.hnorm.weight", d, 0)
		b.norm(p+"nextn.shared_head_norm.weight", d, 0)
	}
}
