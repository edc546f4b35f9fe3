package synth

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestCheckNamesTheFlag(t *testing.T) {
	for want, edit := range map[string]func(s *Spec){
		"--arch bert: unknown":                            func(s *Spec) { s.Arch = "bert" },
		"--layers 0: must be 1 to 512":                    func(s *Spec) { s.Layers = 0 },
		"--experts 2000: must be 1 to 1024":               func(s *Spec) { s.Experts = 2000 },
		"--experts-used 9: must be 1 to 8":                func(s *Spec) { s.Used = 9 },
		"--embd 16: must be":                              func(s *Spec) { s.Embd = 16 },
		"type q4_0 needs multiples of 32":                 func(s *Spec) { s.FF = 48 },
		"type q4_k needs multiples of 256":                func(s *Spec) { s.Type = "Q4_K" },
		"--type: unknown type \"q9\"":                     func(s *Spec) { s.Type = "q9" },
		"--skew -1":                                       func(s *Spec) { s.Skew = -1 },
		"--skew NaN":                                      func(s *Spec) { s.Skew = math.NaN() },
		"--shards 0":                                      func(s *Spec) { s.Shards = 0 },
		"--vocab 10":                                      func(s *Spec) { s.Vocab = 10 },
		"million million":                                 func(s *Spec) { s.Layers, s.Experts, s.Embd, s.FF = 512, 1024, 65536, 65536 },
		"--fused-gate-up: not with --arch qwen3moe":       func(s *Spec) { s.FusedGateUp = true },
		"--tied-head: not with --arch olmoe":              func(s *Spec) { s.Arch, s.TiedHead = "olmoe", true },
		"--mtp: not with --arch qwen3moe":                 func(s *Spec) { s.MTP = true },
		"--dense-lead 4: must be 0 to 3":                  func(s *Spec) { s.DenseLead = 4 },
		"--expert-groups 3: must divide":                  func(s *Spec) { s.Groups = 3 },
		"--expert-groups-used 4: must be":                 func(s *Spec) { s.Groups, s.GroupsUsed = 4, 4 },
		"--experts-used 8: the groups used hold":          func(s *Spec) { s.Used, s.Groups, s.GroupsUsed = 8, 4, 2 },
		"use --arch deepseek2":                            func(s *Spec) { s.DenseLead = 1 },
		"--embd 65":                                       func(s *Spec) { s.Embd = 65 },
		"--embd 72: must be a multiple of 32":             func(s *Spec) { s.Type, s.Embd = "f32", 72 },
		"--embd 64 --ff 32: type q4_k needs multiples of": func(s *Spec) { s.Type = "q4_k" },
	} {
		s := small()
		edit(&s)
		err := s.Check()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := Default().Check(); err != nil {
		t.Error(err)
	}
}

// Simulating the router must give the popularity asked for.
func TestPopularity(t *testing.T) {
	for _, tc := range []struct {
		experts, used int
		skew          float64
	}{{64, 8, 0}, {64, 8, 0.6}, {64, 8, 1.2}, {128, 6, 0.8}, {8, 2, 1}, {16, 15, 1}} {
		want := popularity(tc.experts, tc.used, tc.skew)
		z := biases(tc.experts, tc.used, tc.skew)
		const tokens = 20000
		r := newRNG(99, "test", 0)
		got := make([]float64, tc.experts)
		logits := make([]float64, tc.experts)
		var sum float64
		for range tokens {
			for i := range logits {
				logits[i] = z[i] + r.gauss()
			}
			sorted := slices.Sorted(slices.Values(logits))
			for i, l := range logits {
				if l >= sorted[tc.experts-tc.used] {
					got[i] += 1.0 / tokens
				}
			}
		}
		for i := range want {
			sum += want[i]
			if d := math.Abs(got[i] - want[i]); d > 0.015+0.1*want[i] {
				t.Errorf("%d of %d, skew %g: rank %d is picked by %.3f of tokens, want %.3f", tc.used, tc.experts, tc.skew, i+1, got[i], want[i])
			}
		}
		if math.Abs(sum-float64(tc.used)) > 0.05 {
			t.Errorf("%d of %d, skew %g: shares sum to %g", tc.used, tc.experts, tc.skew, sum)
		}
	}
}

func TestVocab(t *testing.T) {
	for _, size := range []int{minVocab, 1000, 32000} {
		v := makeVocab(size)
		seen := map[string]bool{}
		for _, tok := range v.tokens {
			if seen[tok] || tok == "" {
				t.Errorf("size %d: token %q is there twice or empty", size, tok)
			}
			seen[tok] = true
		}
		if len(v.tokens) != size || len(v.scores) != size || len(v.kinds) != size {
			t.Errorf("size %d: %d tokens, %d scores, %d kinds", size, len(v.tokens), len(v.scores), len(v.kinds))
		}
		for _, need := range []string{"<s>", "<|im_end|>", "<0x00>", "<0xFF>", space, "a", "~", "\n"} {
			if !seen[need] {
				t.Errorf("size %d: no token %q", size, need)
			}
		}
	}
}
