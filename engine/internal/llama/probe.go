package llama

/*
#include <stdlib.h>
#include "probe.h"
#include "ggml-backend.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Kinds of devices.
const (
	DeviceCPU   = "cpu"
	DeviceGPU   = "gpu"
	DeviceIGPU  = "igpu"
	DeviceAccel = "accel"
	DeviceOther = "other"
)

// DeviceInfo is what a registered device says about itself.
type DeviceInfo struct {
	Name, Description string
	Backend           string // the module that registered it
	Kind              string
	Free, Total       int64 // bytes
	HostMemory        bool  // its buffers are memory the CPU reads
	HostBuffer        bool  // it offers a host buffer type
	HostPtr           bool  // it advertises wrapping memory of ours
}

// Devices lists the registered devices, the CPU included.
func Devices() ([]DeviceInfo, error) {
	if err := Init(); err != nil {
		return nil, err
	}
	out := make([]DeviceInfo, int(C.bm_device_count()))
	for i := range out {
		var d C.bm_device
		C.bm_device_at(C.int(i), &d)
		out[i] = DeviceInfo{
			Name: C.GoString(&d.name[0]), Description: C.GoString(&d.description[0]), Backend: C.GoString(&d.backend[0]), Kind: deviceKind(d._type),
			Free: int64(d.mem_free), Total: int64(d.mem_total),
			HostMemory: bool(d.host_memory), HostBuffer: bool(d.host_buffer), HostPtr: bool(d.host_ptr),
		}
	}
	return out, nil
}

func deviceKind(t C.int) string {
	switch t {
	case C.GGML_BACKEND_DEVICE_TYPE_CPU:
		return DeviceCPU
	case C.GGML_BACKEND_DEVICE_TYPE_GPU:
		return DeviceGPU
	case C.GGML_BACKEND_DEVICE_TYPE_IGPU:
		return DeviceIGPU
	case C.GGML_BACKEND_DEVICE_TYPE_ACCEL:
		return DeviceAccel
	}
	return DeviceOther
}

// deviceIndex finds a device by name.
func deviceIndex(name string) (int, error) {
	if err := Init(); err != nil {
		return 0, err
	}
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	i := int(C.bm_device_find(cname))
	if i < 0 {
		return 0, fmt.Errorf("no device is called %q", name)
	}
	return i, nil
}

// MatmulShape is an expert matmul: Tensors tensors of Experts slices of
// Rows x Cols weights, like those of as many layers.
type MatmulShape struct {
	Type       uint32 // ggml type
	Cols, Rows int64
	Experts    int
	Tensors    int
	Used       int // experts of one token
}

// Runs reports whether the device runs such a matmul that many tokens wide.
func (s MatmulShape) Runs(device string, tokens int) (bool, error) {
	i, err := deviceIndex(device)
	if err != nil {
		return false, err
	}
	return bool(C.bm_device_runs(C.int(i), C.int(s.Type), C.int64_t(s.Cols), C.int64_t(s.Rows), C.int(s.Experts), C.int(s.Used), C.int(tokens))), nil
}

// Matmul is such weights on a device, filled with the same noise everywhere.
type Matmul struct {
	m     *C.bm_matmul
	shape MatmulShape
}

// NewMatmul allocates and fills the weights.
func NewMatmul(device string, s MatmulShape, threads int) (*Matmul, error) {
	i, err := deviceIndex(device)
	if err != nil {
		return nil, err
	}
	var why [256]C.char
	m := C.bm_matmul_new(C.bm_matmul_spec{
		device: C.int(i), _type: C.int(s.Type), cols: C.int64_t(s.Cols), rows: C.int64_t(s.Rows),
		experts: C.int(s.Experts), tensors: C.int(max(1, s.Tensors)), threads: C.int(threads),
	}, &why[0], C.size_t(len(why)))
	if m == nil {
		return nil, errors.New(C.GoString(&why[0]))
	}
	return &Matmul{m, s}, nil
}

// Close frees the weights. Its graphs must be closed first.
func (m *Matmul) Close() { C.bm_matmul_free(m.m) }

// Repack lays the weights out as the CPU backend prefers; false when it has no
// other layout for them. Only on the CPU.
func (m *Matmul) Repack() bool { return bool(C.bm_matmul_repack(m.m)) }

// CopySeconds is the time to copy one byte between resident pages, measured
// over n bytes. Only on the CPU.
func (m *Matmul) CopySeconds(n int64) float64 { return float64(C.bm_matmul_copy(m.m, C.size_t(n))) }

// SendRate is the rate, bytes per second, at which weights reach the device.
func (m *Matmul) SendRate(n int64) float64 {
	return float64(n) / float64(C.bm_matmul_send(m.m, C.size_t(n)))
}

// MatmulGraph is some matmuls over the weights, ready to run.
type MatmulGraph struct {
	g      *C.bm_matmul_graph
	rows   int64
	tokens int
	used   int
}

// Graph builds nodes matmuls, each of tokens tokens over used of a tensor's
// first experts; one node after the other goes through all experts of all
// tensors.
func (m *Matmul) Graph(nodes, tokens, used, experts int) (*MatmulGraph, error) {
	var why [256]C.char
	g := C.bm_matmul_graph_new(m.m, C.int(nodes), C.int(tokens), C.int(used), C.int(experts), &why[0], C.size_t(len(why)))
	if g == nil {
		return nil, errors.New(C.GoString(&why[0]))
	}
	return &MatmulGraph{g, m.shape.Rows, tokens, used}, nil
}

// Close frees the graph.
func (g *MatmulGraph) Close() { C.bm_matmul_graph_free(g.g) }

// Run computes once and returns the seconds until the result could be read.
func (g *MatmulGraph) Run() (float64, error) {
	s := float64(C.bm_matmul_run(g.g))
	if s < 0 {
		return 0, errors.New("the device did not compute the matmul")
	}
	return s, nil
}

// Result is the last node's result for its first tokens.
func (g *MatmulGraph) Result(tokens int) []float32 { return g.floats(tokens, false) }

// Reference is the same in plain floats, computed from the quantised weights.
func (g *MatmulGraph) Reference(tokens int) []float32 { return g.floats(tokens, true) }

func (g *MatmulGraph) floats(tokens int, reference bool) []float32 {
	tokens = min(tokens, g.tokens)
	out := make([]float32, g.rows*int64(g.used*tokens))
	if reference {
		C.bm_matmul_reference(g.g, (*C.float)(unsafe.Pointer(&out[0])), C.int(tokens))
	} else {
		C.bm_matmul_out(g.g, (*C.float)(unsafe.Pointer(&out[0])), C.int(tokens))
	}
	return out
}
