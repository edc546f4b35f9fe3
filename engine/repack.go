package engine

import (
	"regexp"

	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/engine/internal/llama"
)

// repacker hands out the CPU backend's layouts by matrix type and shape. A nil
// repacker has none.
type repacker struct{ known map[shape]*llama.Repack }

type shape struct {
	typ        uint32
	cols, rows int64
}

// looked up by row, convolved or read as they are: these are no matmul's
// weights, and llama.cpp leaves them alone.
var notMatmul = regexp.MustCompile(`(^|\.)(token_embd|per_layer_token_embd|position_embd|token_types|conv1d|ssm_conv1d|shortconv\.conv|rope_freqs|rope_factors_\w+|attn_rel_b|cross_attn_rel_b|\w*ape|d2t|\w*tid2eid|\w*embed_tokens)\.?`)

func (r *repacker) of(t *gguf.Tensor) *llama.Repack {
	if r == nil || len(t.Dims) < 2 || t.Dims[1] == 1 {
		return nil
	}
	s := shape{t.Type, t.Dims[0], t.Dims[1]}
	layout, ok := r.known[s]
	if !ok {
		layout = llama.NewRepack(s.typ, s.cols, s.rows)
		r.known[s] = layout
	}
	return layout
}

// dense returns the layout of a weight that is not a routed expert.
func (r *repacker) dense(t *gguf.Tensor) *llama.Repack {
	if len(t.Dims) != 2 || notMatmul.MatchString(t.Name) {
		return nil
	}
	return r.of(t)
}

func (r *repacker) close() {
	if r == nil {
		return
	}
	for _, layout := range r.known {
		if layout != nil {
			layout.Close()
		}
	}
}

// newRepacker is nil unless --repack says on.
func newRepacker(repack string) *repacker {
	if repack != "on" {
		return nil
	}
	return &repacker{map[shape]*llama.Repack{}}
}
