package llama

/*
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"unsafe"
)

// Projections of a layer's experts.
const (
	Gate   = C.BM_GATE
	Up     = C.BM_UP
	Down   = C.BM_DOWN
	GateUp = C.BM_GATE_UP
)

// Router serves a context's routed experts. Its methods are called on the
// thread that decodes; false ends the decode, and Err then says why.
type Router interface {
	// Route is called when a layer's routing is known. ids holds tokens rows
	// of used experts; slots, of the same shape, takes what the expert matmuls
	// are to index instead.
	Route(layer int, ids []int32, used, tokens int, slots []int32) bool
	// Wait is called before the matmul of a projection, when pipelining and
	// reads were under way when the layer was routed.
	Wait(layer, proj int) bool
	// Asked reports whether the routed layer asked for reads that have not been
	// waited for; where it did not, its matmuls wait for nothing.
	Asked() bool
	// Reading reports whether any of them is still under way; where none is,
	// the graph need not be interrupted at its next matmul.
	Reading() bool
	// Offloaded is called when a projection's matmul was handed to a device
	// and the experts that were picked have been copied there.
	Offloaded(layer, proj int)
	// Fail records an error that the binding met.
	Fail(err error)
}

// Hook connects a Router to a context.
type Hook struct {
	h      *C.bm_hook
	handle cgo.Handle
}

// NewHook makes a hook for a model of that many layers, routing width and
// widest graph.
func NewHook(r Router, layers, used, maxTokens int) *Hook {
	handle := cgo.NewHandle(r)
	return &Hook{C.bm_hook_new(C.uintptr_t(handle), C.int(layers), C.int(used), C.int(maxTokens)), handle}
}

// Expert tells the hook about a streamed expert tensor.
func (h *Hook) Expert(t Tensor, layer, proj int) {
	C.bm_hook_expert(h.h, t.t, C.int(layer), C.int(proj))
}

// Seal ends the Expert calls.
func (h *Hook) Seal() { C.bm_hook_seal(h.h) }

// Mode sets how the next graphs are served: remap through the slot table or
// leave the router's ids, whether projections are waited for one by one, and
// whether expert matmuls may run on a device.
func (h *Hook) Mode(remap, pipeline, device bool) {
	C.bm_hook_mode(h.h, C.bool(remap), C.bool(pipeline), C.bool(device))
}

// Abort stops the running graph, and every later one, until it is cleared. It
// may be called from any goroutine.
func (h *Hook) Abort(on bool) { C.bm_hook_abort(h.h, C.bool(on)) }

// Close frees the hook. Its context must be closed first.
func (h *Hook) Close() {
	C.bm_hook_free(h.h)
	h.handle.Delete()
}

// guard turns a panic into a failure: it must not unwind through C frames.
func guard(r Router, ok *C.bool) {
	if p := recover(); p != nil {
		r.Fail(fmt.Errorf("internal error in the router hook: %v", p))
		*ok = false
	}
}

//export bmoeRoute
func bmoeRoute(handle C.uintptr_t, layer C.int, ids *C.int32_t, used, tokens C.int, slots *C.int32_t, reading *C.bool) (ok C.bool) {
	r := cgo.Handle(handle).Value().(Router)
	defer guard(r, &ok)
	n := int(used) * int(tokens)
	in := unsafe.Slice((*int32)(unsafe.Pointer(ids)), n)
	out := unsafe.Slice((*int32)(unsafe.Pointer(slots)), n)
	ok = C.bool(r.Route(int(layer), in, int(used), int(tokens), out))
	*reading = C.bool(r.Asked())
	return ok
}

//export bmoeWait
func bmoeWait(handle C.uintptr_t, layer, proj C.int, reading *C.bool) (ok C.bool) {
	r := cgo.Handle(handle).Value().(Router)
	defer guard(r, &ok)
	ok = C.bool(r.Wait(int(layer), int(proj)))
	*reading = C.bool(r.Reading())
	return ok
}

//export bmoeOffloaded
func bmoeOffloaded(handle C.uintptr_t, layer, proj C.int) {
	cgo.Handle(handle).Value().(Router).Offloaded(int(layer), int(proj))
}

//export bmoeTooWide
func bmoeTooWide(handle C.uintptr_t, layer, used, tokens C.int) {
	r := cgo.Handle(handle).Value().(Router)
	r.Fail(fmt.Errorf("layer %d routes %d experts for %d tokens, more than the context was opened for", layer, used, tokens))
}

//export bmoeUnrouted
func bmoeUnrouted(handle C.uintptr_t, layer C.int) {
	r := cgo.Handle(handle).Value().(Router)
	r.Fail(fmt.Errorf("layer %d uses its experts without a routing node (ffn_moe_topk-%d) before them: this graph cannot be streamed; run the model with --no-moe-stream", layer, layer))
}
