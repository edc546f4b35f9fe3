package llama

/*
#include "bridge.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// ContextParams sizes a context.
type ContextParams struct {
	Ctx, Batch, UBatch    int
	Threads, ThreadsBatch int
	FlashAttn             string // auto, on, off
	TypeK, TypeV          string // f16, q8_0, ...
	OpOffload             bool
	Outputs               int // positions of one graph whose logits may be asked for; 0: 1
}

// Context holds the state of one conversation.
type Context struct {
	c     *C.bm_context
	vocab int
}

// ErrAborted is what Decode returns after Hook.Abort.
var ErrAborted = errors.New("decode aborted")

var flashAttn = map[string]C.int{"auto": -1, "off": 0, "on": 1}

var cacheTypes = map[string]C.int{
	"f32": C.GGML_TYPE_F32, "f16": C.GGML_TYPE_F16, "bf16": C.GGML_TYPE_BF16,
	"q8_0": C.GGML_TYPE_Q8_0, "q4_0": C.GGML_TYPE_Q4_0, "q4_1": C.GGML_TYPE_Q4_1,
	"iq4_nl": C.GGML_TYPE_IQ4_NL, "q5_0": C.GGML_TYPE_Q5_0, "q5_1": C.GGML_TYPE_Q5_1,
}

// NewContext opens a context; hook may be nil.
func NewContext(m *Model, p ContextParams, hook *Hook) (*Context, error) {
	cp := C.bm_context_params{
		n_ctx: C.uint32_t(p.Ctx), n_batch: C.uint32_t(p.Batch), n_ubatch: C.uint32_t(p.UBatch),
		n_threads: C.int(p.Threads), n_threads_batch: C.int(p.ThreadsBatch),
		flash_attn: flashAttn[p.FlashAttn], type_k: cacheTypes[p.TypeK], type_v: cacheTypes[p.TypeV],
		op_offload: C.bool(p.OpOffload), n_outputs: C.uint32_t(max(p.Outputs, 1)),
	}
	var ch *C.bm_hook
	if hook != nil {
		ch = hook.h
	}
	c := C.bm_context_new(m.m, cp, ch)
	if c == nil {
		return nil, fmt.Errorf("opening a context of %d tokens (-c): %w", p.Ctx, lastError("opening the context"))
	}
	return &Context{c, m.VocabSize()}, nil
}

// Close frees the context.
func (c *Context) Close() {
	C.bm_context_free(c.c)
	c.c = nil
}

// Decode computes tokens after those already in the context.
func (c *Context) Decode(tokens []int32) error {
	return decoded(C.bm_decode(c.c, (*C.int32_t)(unsafe.Pointer(&tokens[0])), C.int(len(tokens))), len(tokens))
}

// DecodeAt computes tokens and keeps the logits of the positions where wanted
// is set.
func (c *Context) DecodeAt(tokens []int32, wanted []bool) error {
	return decoded(C.bm_decode_at(c.c, (*C.int32_t)(unsafe.Pointer(&tokens[0])), (*C.int8_t)(unsafe.Pointer(&wanted[0])), C.int(len(tokens))), len(tokens))
}

func decoded(rc C.int, n int) error {
	if rc == 0 {
		return nil
	}
	// Taken in any case: what is left in the log would be told of a later call.
	said := lastError(fmt.Sprintf("decoding %d tokens", n))
	switch rc {
	case 1:
		return errors.New("the context is full: raise -c")
	case 2:
		return ErrAborted
	}
	return said
}

// Logits are the last position's, valid until the next Decode.
func (c *Context) Logits() []float32 { return c.LogitsAt(-1) }

// LogitsAt are those of position i of the last graph.
func (c *Context) LogitsAt(i int) []float32 {
	p := C.bm_logits(c.c, C.int(i))
	if p == nil {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(p)), c.vocab)
}

// Replan has the next graph planned anew, after Device.Offload changed what
// runs where.
func (c *Context) Replan() { C.bm_context_replan(c.c) }

// Clear empties the context.
func (c *Context) Clear() { C.bm_memory_clear(c.c) }

// Truncate forgets what lies at position from and after. It reports whether
// the model's memory can do that.
func (c *Context) Truncate(from int) bool {
	return bool(C.bm_memory_truncate(c.c, C.int32_t(from)))
}

// Size is the context's size in tokens.
func (c *Context) Size() int { return int(C.llama_n_ctx(C.bm_context_llama(c.c))) }

// Sampler picks the next token.
type Sampler struct{ s *C.struct_llama_sampler }

// NewSampler is greedy at temp 0, else top-k, top-p, temperature, seeded draw.
func NewSampler(temp float64, topK int, topP float64, seed int64) *Sampler {
	return &Sampler{C.bm_sampler_new(C.float(temp), C.int(topK), C.float(topP), C.uint32_t(seed))}
}

// Sample picks from the context's last logits.
func (s *Sampler) Sample(c *Context) int32 {
	return int32(C.llama_sampler_sample(s.s, C.bm_context_llama(c.c), -1))
}

// Close frees the sampler.
func (s *Sampler) Close() { C.llama_sampler_free(s.s) }
