package llama

/*
#include "bridge.h"
#include "repack.h"
*/
import "C"

import "unsafe"

// Repack turns matrices of one type and shape into the CPU backend's own
// layout. Run may be called by several goroutines at once.
type Repack struct{ r *C.bm_repack }

// NewRepack returns nil when the CPU backend here has no other layout for such
// matrices.
func NewRepack(typ uint32, cols, rows int64) *Repack {
	//nolint:unconvert // what integer an enum is, is the compiler's to say
	r := C.bm_repack_new(C.enum_ggml_type(typ), C.int64_t(cols), C.int64_t(rows))
	if r == nil {
		return nil
	}
	return &Repack{r}
}

// Run repacks one matrix. Neither slice may be Go memory that moves.
func (r *Repack) Run(dst, src []byte) {
	C.bm_repack_run(r.r, unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)))
}

// Mark says that t's data lies in the repacked layout. Before any context.
func (r *Repack) Mark(t Tensor) { C.bm_repack_mark(r.r, t.t) }

// Head makes the output matmul of a model with a tied head read data, a copy of
// the embedding table in the layout, instead of the table.
func (h *Hook) Head(embd Tensor, layout *Repack, data uintptr) {
	C.bm_hook_head(h.h, embd.t, layout.r, C.uintptr_t(data))
}

// Close frees it. No tensor marked with it may be used afterwards.
func (r *Repack) Close() { C.bm_repack_free(r.r) }
