package llama

/*
#include <stdlib.h>
#include "bridge.h"
#include "project.h"
#include "replay.h"
*/
import "C"

import "errors"

// Projected is what a context would hold, or holds, in one device's memory;
// Device "" is the host's. Sizes are bytes.
type Projected struct {
	Device                  string
	Model, Context, Compute int64
}

// Projection answers what contexts over a model would hold. Nothing is read
// but metadata and nothing is allocated.
type Projection struct{ p *C.bm_project }

// NewProjection reads the metadata of the model in paths. Wide matmuls are
// offloaded to the device of that name; "" leaves them on the host.
func NewProjection(paths []string, gpuLayers int, device string) (*Projection, error) {
	if err := Init(); err != nil {
		return nil, err
	}
	index := -1
	if device != "" {
		i, err := deviceIndex(device)
		if err != nil {
			return nil, err
		}
		index = i
	}
	cpaths, free := cStrings(paths)
	defer free()
	p := C.bm_project_new(cpaths, C.int(len(paths)), C.int(gpuLayers), C.int(index))
	if p == nil {
		return nil, lastError("reading the model's metadata")
	}
	return &Projection{p}, nil
}

// Close frees it.
func (p *Projection) Close() { C.bm_project_free(p.p) }

// At projects a context; only its size, widths, attention and cache types
// matter.
func (p *Projection) At(c ContextParams) ([]Projected, error) {
	var rows [memories]C.bm_project_row
	return projected(rows[:], C.bm_project_at(p.p, c.project(), &rows[0], memories))
}

// memories is how many devices' memory is told apart.
const memories = 64

func projected(rows []C.bm_project_row, n C.int) ([]Projected, error) {
	switch {
	case n == -2:
		return nil, errors.New("this build of llama.cpp does not tell what a context holds")
	case n < 0:
		return nil, lastError("projecting a context")
	}
	out := make([]Projected, int(n))
	for i := range out {
		out[i] = Projected{C.GoString(&rows[i].name[0]), int64(rows[i].model), int64(rows[i].context), int64(rows[i].compute)}
	}
	return out, nil
}

// Memory is what the context and its model hold, by the memory it is in.
func (c *Context) Memory() ([]Projected, error) {
	var rows [memories]C.bm_project_row
	return projected(rows[:], C.bm_context_memory(C.bm_context_llama(c.c), &rows[0], memories))
}

func (c ContextParams) project() C.bm_project_params {
	return C.bm_project_params{
		n_ctx: C.uint32_t(c.Ctx), n_batch: C.uint32_t(c.Batch), n_ubatch: C.uint32_t(c.UBatch),
		flash_attn: flashAttn[c.FlashAttn], type_k: cacheTypes[c.TypeK], type_v: cacheTypes[c.TypeV],
	}
}

// Nodes counts what computes something in the graph of one token.
func (p *Projection) Nodes(c ContextParams) (int, error) {
	n := int(C.bm_project_nodes(p.p, c.project()))
	if n < 0 {
		return 0, errors.New("this build of llama.cpp does not show its graphs")
	}
	return n, nil
}

// Replay is the graph of one token without the weights it reads.
type Replay struct {
	r     *C.bm_replay
	Nodes int // that compute something
}

// Replay copies that graph onto the CPU with memory of its own.
func (p *Projection) Replay(c ContextParams) (*Replay, error) {
	r := C.bm_project_replay(p.p, c.project(), C.int(c.Threads))
	if r == nil {
		return nil, errors.New("this build of llama.cpp does not show its graphs, or the model's cannot be copied")
	}
	return &Replay{r, int(C.bm_replay_nodes(r))}, nil
}

// Run computes it once and returns the seconds that took.
func (r *Replay) Run() (float64, error) {
	s := float64(C.bm_replay_run(r.r))
	if s < 0 {
		return 0, errors.New("the graph was not computed")
	}
	return s, nil
}

// Close frees it.
func (r *Replay) Close() { C.bm_replay_free(r.r) }
