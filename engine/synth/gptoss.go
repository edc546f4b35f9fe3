package synth

// An architecture in the manner of gpt-oss: attention with sinks and a sliding
// window in every other layer, biases on router and experts.

func keysGPTOSS(b *builder) {
	b.keys.u32(b.key("expert_feed_forward_length"), b.FF)
	b.keys.u32(b.key("feed_forward_length"), b.FF)
	b.keys.u32(b.key("attention.sliding_window"), 128)
}

func attnSinks(b *builder, layer int) {
	p := blk(layer)
	attnBiased(b, layer)
	b.vector(p+"attn_output.bias", 0.02, int64(b.Embd))
	b.vector(p+"attn_sinks.weight", 1, int64(b.heads))
}
