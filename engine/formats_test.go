package engine

import (
	"testing"

	"github.com/bmoe/bmoe/engine/synth"
)

// Every layout llama.cpp has for routed experts streams with the resident
// model's bits.
func TestFormats(t *testing.T) {
	with := func(s synth.Spec, f func(*synth.Spec)) synth.Spec {
		f(&s)
		return s
	}
	q8 := func(arch string) synth.Spec { return tiny(arch, "q8_0") }
	formats := map[string]synth.Spec{
		"shards":      with(q8("qwen3moe"), func(s *synth.Spec) { s.Shards = 4 }),
		"f16":         tiny("qwen3moe", "f16"),
		"q4_k":        tiny("qwen3moe", "q4_k"),
		"q5_k":        tiny("qwen3moe", "q5_k"),
		"q6_k":        tiny("qwen3moe", "q6_k"),
		"q2_k":        tiny("qwen3moe", "q2_k"),
		"mxfp4":       tiny("qwen3moe", "mxfp4"),
		"iq4_nl":      tiny("qwen3moe", "iq4_nl"),
		"mixed":       with(tiny("qwen3moe", "q4_k"), func(s *synth.Spec) { s.Mixed, s.Layers = true, 6 }),
		"tied":        with(q8("qwen3moe"), func(s *synth.Spec) { s.TiedHead = true }),
		"scaled":      with(q8("qwen3moe"), func(s *synth.Spec) { s.Scaled = true }),
		"fused":       with(q8("deepseek2"), func(s *synth.Spec) { s.FusedGateUp = true }),
		"fused-mtp":   with(q8("deepseek2"), func(s *synth.Spec) { s.FusedGateUp, s.MTP = true, true }),
		"dense-lead":  with(q8("deepseek2"), func(s *synth.Spec) { s.DenseLead = 1 }),
		"latent-wide": with(q8("deepseek2"), func(s *synth.Spec) { s.Embd, s.FF = 1024, 128 }), // 8 heads, one key
		"grouped":     with(q8("deepseek2"), func(s *synth.Spec) { s.Groups, s.GroupsUsed = 4, 2 }),
		"gpt-oss":     tiny("gpt-oss", "mxfp4"),
		"shared":      q8("qwen2moe"),
		"odd-slices":  with(tiny("llama", "q8_0"), func(s *synth.Spec) { s.FF = 160 }),
		"one-expert":  with(q8("qwen3moe"), func(s *synth.Spec) { s.Used = 1 }),
		"every-layer": with(q8("qwen3moe"), func(s *synth.Spec) { s.Layers = 1 }),
	}
	for name, spec := range formats {
		t.Run(name, func(t *testing.T) { sameBits(t, makeModel(t, "format-"+name, spec)) })
	}
}
