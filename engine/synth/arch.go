package synth

import (
	"math"
	"strconv"
)

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
	biased   bool                        // router and experts have biases
	growth   float64                     // of the residual stream, over all layers
	norm     string                      // name of the norm before the experts; "" is the usual one
	ownHeads bool                        // sets the head sizes itself
}

var archs = map[string]*arch{
	"qwen3moe":  {growth: localGrowth, keys: keysExpertFF, attn: attnNormed, ffn: ffnPlain, tied: true, scaled: true},
	"llama":     {growth: localGrowth, keys: keysFF, attn: attnPlain, ffn: ffnPlain, tied: true, scaled: true},
	"olmoe":     {growth: localGrowth, keys: keysFF, attn: attnWideNorm, ffn: ffnPlain, allKV: true},
	"qwen2moe":  {growth: localGrowth, keys: keysShared, attn: attnBiased, ffn: ffnShared},
	"deepseek2": {growth: latentGrowth, keys: keysDeepseek, attn: attnLatent, ffn: ffnDeepseek, tied: true, fused: true, mtp: true, lead: true, ownHeads: true},
	"gpt-oss":   {growth: localGrowth, keys: keysGPTOSS, attn: attnSinks, ffn: ffnPlain, biased: true, norm: "post_attention_norm"},
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
	b.attention(layer, math.Sqrt(locality/math.Sqrt(float64(b.head))))
}

// normedStripe is the stripe's share in queries and keys that a norm follows.
const normedStripe = 1.5

// attnNormed has a norm per head.
func attnNormed(b *builder, layer int) {
	b.attention(layer, normedStripe)
	b.normsQK(layer, int64(b.head), int64(b.head))
}

// attnWideNorm has one norm over all heads.
func attnWideNorm(b *builder, layer int) {
	b.attention(layer, normedStripe)
	b.normsQK(layer, int64(b.heads*b.head), int64(b.headsKV*b.head))
}

// normsQK adds norms of queries and keys whose size makes up for the norm.
func (b *builder) normsQK(layer int, q, k int64) {
	const share = normedStripe * normedStripe / (1 + normedStripe*normedStripe)
	size := math.Sqrt(locality / math.Sqrt(float64(b.head)) / share)
	b.around(blk(layer)+"attn_q_norm.weight", size, 0.05, q)
	b.around(blk(layer)+"attn_k_norm.weight", size, 0.05, k)
}

func attnBiased(b *builder, layer int) {
	attnPlain(b, layer)
	b.vector(blk(layer)+"attn_q.bias", 0.1, int64(b.heads*b.head))
	b.vector(blk(layer)+"attn_k.bias", 0.1, int64(b.headsKV*b.head))
	b.vector(blk(layer)+"attn_v.bias", 0.1, int64(b.headsKV*b.head))
}

// attention adds the four matrices. stripe is what the pattern adds to each
// value of a query and of a key.
func (b *builder) attention(layer int, stripe float64) {
	p := blk(layer)
	q, kv := int64(b.heads*b.head), int64(b.headsKV*b.head)
	level := stripe * b.grown(layer) / float64(b.patternWidth())
	b.striped(p+"attn_q.weight", level, q)
	b.striped(p+"attn_k.weight", level, kv)
	b.striped(p+"attn_v.weight", 0, kv)
	b.weight(p+"attn_output.weight", attnGain*b.gain()*over(q), q, int64(b.Embd))
}

// striped adds a random matrix whose every row has the pattern, times level,
// where the residual stream has it.
func (b *builder) striped(name string, level float64, rows int64) {
	q := b.dense8()
	stripe := b.pattern()
	for i := range stripe {
		stripe[i] *= float32(level)
	}
	src := &stripedSource{randomSource: *b.random(name, q, b.unit()), row: q.rowBytes(int64(b.Embd))}
	src.stripe = make([]byte, q.rowBytes(int64(len(stripe))))
	q.encode(src.stripe, stripe)
	b.add(name, q, src, int64(b.Embd), rows)
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
