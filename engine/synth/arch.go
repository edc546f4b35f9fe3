package synth

import "strconv"

// arch is how llama.cpp names and shapes the tensors of an architecture.
type arch struct {
	keys     func(b *builder)            // metadata of its own
	attn     func(b *builder, layer int) // attention tensors
	ffn      func(b *builder, layer int) // feed-forward tensors
	fused    bool                        // gate and up may be one tensor
	tied     bool                        // the head may be the embedding table
	mtp      bool                        // may have trailing blocks for multi-token prediction
	scaled   bool                        // may have a scale per expert
	lead     bool                        // may have leading dense layers
	allKV    bool                        // as many key as query heads
	ownHeads bool                        // sets the head sizes itself
}

var archs = map[string]*arch{
	"qwen3moe": {keys: keysExpertFF, attn: attnNormed, ffn: ffnPlain, tied: true, scaled: true},
	"llama":    {keys: keysFF, attn: attnPlain, ffn: ffnPlain, tied: true, scaled: true},
	"olmoe":    {keys: keysFF, attn: attnWideNorm, ffn: ffnPlain, allKV: true},
	"qwen2moe": {keys: keysShared, attn: attnBiased, ffn: ffnShared},
}

// keysFF names the width of an expert as a dense layer's.
func keysFF(b *builder) { b.keys.u32(b.key("feed_forward_length"), b.FF) }

func keysExpertFF(b *builder) {
	b.keys.u32(b.key("feed_forward_length"), b.FF*b.Used)
	b.keys.u32(b.key("expert_feed_forward_length"), b.FF)
}

func keysShared(b *builder) {
	keysExpertFF(b)
	b.keys.u32(b.key("expert_shared_feed_forward_length"), b.FF)
}

// attnPlain is grouped-query attention.
func attnPlain(b *builder, layer int) {
	p := blk(layer)
	q, kv := int64(b.heads*b.head), int64(b.headsKV*b.head)
	b.weight(p+"attn_q.weight", b.unit(), int64(b.Embd), q)
	b.weight(p+"attn_k.weight", b.unit(), int64(b.Embd), kv)
	b.weight(p+"attn_v.weight", b.unit(), int64(b.Embd), kv)
	b.weight(p+"attn_output.weight", attnGain*b.gain()*over(q), q, int64(b.Embd))
}

// attnNormed has a norm per head.
func attnNormed(b *builder, layer int) {
	attnPlain(b, layer)
	b.norm(blk(layer)+"attn_q_norm.weight", int64(b.head), 0)
	b.norm(blk(layer)+"attn_k_norm.weight", int64(b.head), 0)
}

// attnWideNorm has one norm over all heads.
func attnWideNorm(b *builder, layer int) {
	attnPlain(b, layer)
	b.norm(blk(layer)+"attn_q_norm.weight", int64(b.heads*b.head), 0)
	b.norm(blk(layer)+"attn_k_norm.weight", int64(b.headsKV*b.head), 0)
}

func attnBiased(b *builder, layer int) {
	attnPlain(b, layer)
	b.vector(blk(layer)+"attn_q.bias", 0.1, int64(b.heads*b.head))
	b.vector(blk(layer)+"attn_k.bias", 0.1, int64(b.headsKV*b.head))
	b.vector(blk(layer)+"attn_v.bias", 0.1, int64(b.headsKV*b.head))
}

// ffnPlain is routed experts and nothing else.
func ffnPlain(b *builder, layer int) { b.experts(layer) }

// ffnShared has one more expert that every token uses, with its own gate.
func ffnShared(b *builder, layer int) {
	b.experts(layer)
	p := blk(layer)
	b.vector(p+"ffn_gate_inp_shexp.weight", b.unit(), int64(b.Embd))
	b.dense(p, "_shexp", int64(b.FF))
}

func blk(layer int) string { return "blk." + strconv.Itoa(layer) + "." }
