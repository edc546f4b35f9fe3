// Package synth writes Mixture-of-Experts models in GGUF: random ones of any
// size, and ones made from a small dense checkpoint by copying its feed-forward
// layer into every expert. Equal specifications give equal bytes.
//
// A random model's text is noise, but its graph, its file layout and the way
// its router picks experts are those of a real model: activations stay finite
// over any number of layers, routing depends on the hidden state, and the
// popularity of experts follows a power law whose exponent is a parameter.
package synth

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Spec is what model to write.
type Spec struct {
	Arch    string
	Layers  int
	Experts int
	Used    int // experts per token
	Embd    int // width of the residual stream
	FF      int // width of one expert
	Type    string
	Seed    uint64
	Skew    float64 // popularity of the r-th expert falls as r to the power -Skew
	Shards  int
	Vocab   int
	Context int

	Mixed       bool // expert types that differ by layer and projection
	FusedGateUp bool // one tensor for gate and up
	TiedHead    bool // the embedding table is the head
	MTP         bool // a trailing block for multi-token prediction
	Scaled      bool // a scale per expert beside each expert tensor
	DenseLead   int  // leading layers without experts
	Groups      int  // expert groups; 0 or 1: ungrouped
	GroupsUsed  int
}

// Default is a model of about 500 MB.
func Default() Spec {
	return Spec{
		Arch: "qwen3moe", Layers: 16, Experts: 64, Used: 8, Embd: 768, FF: 384,
		Type: "q4_0", Seed: 1, Skew: 0.6, Shards: 1, Vocab: 4096, Context: 4096,
	}
}

const (
	maxSize    = 1 << 44 // bytes; a typing error, not a model
	maxLayers  = 512     // llama.cpp's own limits
	maxExperts = 1024
	maxShards  = 999
)

// Check says what is wrong with the specification.
func (s Spec) Check() error {
	a, ok := archs[s.Arch]
	if !ok {
		return fmt.Errorf("--arch %s: unknown architecture; possible: %s", s.Arch, strings.Join(ArchNames(), " "))
	}
	if err := s.checkNumbers(); err != nil {
		return err
	}
	if err := s.checkWidths(); err != nil {
		return err
	}
	return s.checkFeatures(a)
}

func (s Spec) checkNumbers() error {
	for _, n := range []struct {
		flag        string
		v, low, top int
	}{
		{"--layers", s.Layers, 1, maxLayers},
		{"--experts", s.Experts, 1, maxExperts},
		{"--experts-used", s.Used, 1, s.Experts},
		{"--embd", s.Embd, 64, 1 << 16},
		{"--ff", s.FF, 32, 1 << 18},
		{"--shards", s.Shards, 1, maxShards},
		{"--vocab", s.Vocab, minVocab, 1 << 18},
		{"--context", s.Context, 64, 1 << 24},
		{"--dense-lead", s.DenseLead, 0, s.Layers - 1},
		{"--expert-groups", s.Groups, 0, s.Experts - 1},
	} {
		if n.v < n.low || n.v > n.top {
			return fmt.Errorf("%s %d: must be %d to %d", n.flag, n.v, n.low, n.top)
		}
	}
	if !(s.Skew >= 0 && s.Skew <= 4) {
		return fmt.Errorf("--skew %g: must be 0 to 4", s.Skew)
	}
	if float64(s.Layers)*float64(s.Experts)*float64(s.Embd)*float64(s.FF) > maxSize {
		return errors.New("the model would have more than 16 million million expert weights; lower --layers, --experts, --embd or --ff")
	}
	return nil
}

func (s Spec) checkWidths() error {
	q, err := quantByName(s.Type)
	if err != nil {
		return fmt.Errorf("--type: %w", err)
	}
	types := []*quant{q}
	if s.Mixed {
		types = append(types, quants[q.partner])
	}
	for _, q := range types {
		if s.Embd%q.block != 0 || s.FF%q.block != 0 {
			return fmt.Errorf("--embd %d --ff %d: type %s needs multiples of %d", s.Embd, s.FF, q.name, q.block)
		}
	}
	if s.Embd%32 != 0 {
		return fmt.Errorf("--embd %d: must be a multiple of 32", s.Embd)
	}
	return nil
}

func (s Spec) checkFeatures(a *arch) error {
	for _, f := range []struct {
		on   bool
		flag string
		has  func(*arch) bool
	}{
		{s.FusedGateUp, "--fused-gate-up", func(a *arch) bool { return a.fused }},
		{s.TiedHead, "--tied-head", func(a *arch) bool { return a.tied }},
		{s.MTP, "--mtp", func(a *arch) bool { return a.mtp }},
		{s.Scaled, "--scaled", func(a *arch) bool { return a.scaled }},
		{s.DenseLead > 0, "--dense-lead", func(a *arch) bool { return a.lead }},
	} {
		if f.on && !f.has(a) {
			return fmt.Errorf("%s: not with --arch %s, which llama.cpp reads without it; use --arch %s", f.flag, s.Arch, strings.Join(archsWith(f.has), " or "))
		}
	}
	if s.Groups > 1 {
		switch {
		case s.Experts%s.Groups != 0 || s.Experts/s.Groups < 2:
			return fmt.Errorf("--expert-groups %d: must divide --experts %d into groups of two or more", s.Groups, s.Experts)
		case s.GroupsUsed < 1 || s.GroupsUsed >= s.Groups:
			return fmt.Errorf("--expert-groups-used %d: must be 1 to %d", s.GroupsUsed, s.Groups-1)
		case s.Used > s.Experts/s.Groups*s.GroupsUsed:
			return fmt.Errorf("--experts-used %d: the groups used hold only %d experts", s.Used, s.Experts/s.Groups*s.GroupsUsed)
		}
	}
	return nil
}

// headSize is the width of an attention head: the largest usual one that
// divides the residual stream into four or more.
func (s Spec) headSize() int {
	for _, h := range []int{128, 64, 32, 16} {
		if s.Embd%h == 0 && s.Embd/h >= 4 {
			return h
		}
	}
	return 8
}

// gain is the share of a layer in the growth of the residual stream, so that
// the sum over all layers does not depend on their number.
func (s Spec) gain() float64 { return 1 / math.Sqrt(float64(s.Layers)) }

// ArchNames lists the architectures that can be written.
func ArchNames() []string {
	return archsWith(func(*arch) bool { return true })
}

func archsWith(has func(*arch) bool) []string {
	var out []string
	for name, a := range archs {
		if has(a) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
