package llama

/*
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"runtime"
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
	// Guess is told, after a layer's Route or Resident, which expert of the next
	// that is not in the table its router will likeliest pick.
	Guess(layer int, expert int32) bool
	// Resident is told, in order and before the next Route or Guess, of routings
	// that were answered from the table alone: all their experts had a slot.
	Resident(layer int, ids []int32, used, tokens int)
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
	r      Router
	handle cgo.Handle
	table  runtime.Pinner
}

// NewHook makes a hook for a model of that many layers, routing width and
// widest graph.
func NewHook(r Router, layers, used, maxTokens int) *Hook {
	handle := cgo.NewHandle(r)
	return &Hook{h: C.bm_hook_new(C.uintptr_t(handle), C.int(layers), C.int(used), C.int(maxTokens)), r: r, handle: handle}
}

// Table lets the hook answer by itself, while ids are remapped, where every
// expert that was picked has a slot in the table: experts entries a layer, -1
// for none. The router may change entries in its own calls and between graphs.
func (h *Hook) Table(slots []int32, experts int) {
	h.table.Pin(&slots[0])
	C.bm_hook_table(h.h, (*C.int32_t)(unsafe.Pointer(&slots[0])), C.int(experts))
}

// Routers has the router told of likely experts before their layer is routed,
// as the routers among the model's tensors make them likely. It follows Table.
func (h *Hook) Routers(tensors []Tensor) {
	for _, t := range tensors {
		C.bm_hook_router(h.h, t.t)
	}
}

// Settle tells the router of what was answered without it. It is called after
// every graph.
func (h *Hook) Settle() {
	var log *C.int32_t
	n := C.bm_hook_log(h.h, &log)
	tell(h.r, unsafe.Slice((*int32)(unsafe.Pointer(log)), n))
}

// Calls is how many routings were answered inside a graph that went on, and how
// many of those had to wait for reads.
func (h *Hook) Calls() (calls, read int64) {
	var c, r C.int64_t
	C.bm_hook_calls(h.h, &c, &r)
	return int64(c), int64(r)
}

// tell reads a log: layer, used, tokens, then used*tokens ids, again and again.
func tell(r Router, log []int32) {
	for len(log) > 0 {
		used, tokens := int(log[1]), int(log[2])
		n := used * tokens
		r.Resident(int(log[0]), log[3:3+n], used, tokens)
		log = log[3+n:]
	}
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
	h.table.Unpin()
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
func bmoeRoute(handle C.uintptr_t, layer C.int, ids *C.int32_t, used, tokens C.int, slots *C.int32_t, reading *C.bool, log *C.int32_t, logged C.int) (ok C.bool) {
	r := cgo.Handle(handle).Value().(Router)
	defer guard(r, &ok)
	tell(r, unsafe.Slice((*int32)(unsafe.Pointer(log)), logged))
	n := int(used) * int(tokens)
	in := unsafe.Slice((*int32)(unsafe.Pointer(ids)), n)
	out := unsafe.Slice((*int32)(unsafe.Pointer(slots)), n)
	ok = C.bool(r.Route(int(layer), in, int(used), int(tokens), out))
	*reading = C.bool(r.Asked())
	return ok
}

//export bmoeGuess
func bmoeGuess(handle C.uintptr_t, layer, expert C.int, log *C.int32_t, logged C.int) (ok C.bool) {
	r := cgo.Handle(handle).Value().(Router)
	defer guard(r, &ok)
	tell(r, unsafe.Slice((*int32)(unsafe.Pointer(log)), logged))
	return C.bool(r.Guess(int(layer), int32(expert)))
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
