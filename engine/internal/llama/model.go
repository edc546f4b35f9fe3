package llama

/*
#include <stdlib.h>
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// ModelParams says how a model is loaded.
type ModelParams struct {
	Stream    bool     // the caller places every weight; nothing is read
	LoadMode  string   // resident: auto, none, mmap, mlock, mmap+mlock, dio
	Repack    bool     // resident: repack weights as stock llama.cpp does
	Experts   []string // stream: regular expressions of the expert tensors that stay with the host
	Dense     []string // stream: and of the others; nil: all
	Host      []string // resident: of tensors kept off the devices
	GPULayers int
	Devices   []Device  // that may be used; with GPULayers and none named, all
	Split     []float32 // each device's part of the layers; nil: by their free memory
	UsedKey   string    // key of the routing width, to override it; "" leaves it
	Used      int
}

// Model is a loaded model.
type Model struct{ m *C.bm_model }

// Load reads the model in paths: one file, or all shards in order.
func Load(paths []string, p ModelParams) (*Model, error) {
	if err := Init(); err != nil {
		return nil, err
	}
	cp := C.bm_model_params{
		stream:       C.bool(p.Stream),
		repack:       C.bool(p.Repack),
		n_gpu_layers: C.int(p.GPULayers),
	}
	if p.GPULayers == 0 || len(p.Devices) > 0 {
		devs, free := cDevices(p.Devices)
		defer free()
		cp.devices = devs
	}
	if !p.Stream {
		mode := C.CString(p.LoadMode)
		defer C.free(unsafe.Pointer(mode))
		cp.load_mode = C.int(C.llama_load_mode_from_str(mode))
	}
	if p.UsedKey != "" {
		key := C.CString(p.UsedKey)
		defer C.free(unsafe.Pointer(key))
		cp.used_key, cp.n_used = key, C.int(p.Used)
	}
	if p.Dense == nil {
		p.Dense = []string{"."}
	}
	host := p.Experts
	if !p.Stream {
		host = p.Host
	}
	pats, freePats := cStrings(host)
	defer freePats()
	cp.patterns, cp.n_overrides = pats, C.int(len(host))
	dense, freeDense := cStrings(p.Dense)
	defer freeDense()
	cp.dense, cp.n_dense = dense, C.int(len(p.Dense))
	if len(p.Split) > 0 {
		split := (*C.float)(C.calloc(C.llama_max_devices(), C.size_t(unsafe.Sizeof(C.float(0)))))
		defer C.free(unsafe.Pointer(split))
		for i, to := 0, unsafe.Slice(split, len(p.Split)); i < len(to); i++ {
			to[i] = C.float(p.Split[i])
		}
		cp.split = split
	}
	cpaths, freePaths := cStrings(paths)
	defer freePaths()
	m := C.bm_model_new(cpaths, C.int(len(paths)), cp)
	if m == nil {
		return nil, fmt.Errorf("%s: %w", paths[0], lastError("loading the model"))
	}
	return &Model{m}, nil
}

// cStrings copies ss into a C array that free releases.
func cStrings(ss []string) (arr **C.char, free func()) {
	n := max(len(ss), 1)
	arr = (**C.char)(C.malloc(C.size_t(n) * C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	view := unsafe.Slice(arr, n)
	for i, s := range ss {
		view[i] = C.CString(s)
	}
	return arr, func() {
		for i := range ss {
			C.free(unsafe.Pointer(view[i]))
		}
		C.free(unsafe.Pointer(arr))
	}
}

// Close frees the model. Contexts must be closed first.
func (m *Model) Close() {
	C.bm_model_free(m.m)
	m.m = nil
}

func (m *Model) c() *C.struct_llama_model { return C.bm_model_llama(m.m) }

// Tensor is one weight tensor of a model loaded with Stream.
type Tensor struct{ t *C.struct_ggml_tensor }

// Tensors lists the weights of a streamed model in load order.
func (m *Model) Tensors() []Tensor {
	out := make([]Tensor, int(C.bm_model_n_tensors(m.m)))
	for i := range out {
		out[i] = Tensor{C.bm_model_tensor(m.m, C.int(i))}
	}
	return out
}

// Name is the tensor's name in the file.
func (t Tensor) Name() string { return C.GoString(C.ggml_get_name(t.t)) }

// Bytes is the size llama.cpp expects the tensor's data to have.
func (t Tensor) Bytes() int64 { return int64(C.ggml_nbytes(t.t)) }

// OnHost reports whether the tensor lies in memory the CPU reads.
func (t Tensor) OnHost() bool { return bool(C.bm_tensor_on_host(t.t)) }

// Set writes to a tensor that lies in a device's memory.
func (t Tensor) Set(data []byte, offset int64) {
	C.bm_tensor_set(t.t, unsafe.Pointer(&data[0]), C.size_t(offset), C.size_t(len(data)))
}

// Data is the tensor's address.
func (t Tensor) Data() uintptr { return uintptr(C.bm_tensor_data(t.t)) }

// Bind points the tensor at memory that is not managed by Go.
func (t Tensor) Bind(data uintptr) {
	C.bm_tensor_bind(t.t, C.uintptr_t(data), 0, 0)
}

// BindExperts points an expert tensor at an array of n expert slices that lie
// stride bytes apart, in memory that is not managed by Go. One slice is declared
// as two, of which no id names the second: ggml takes what has one for a matrix,
// which no repacked layout can be multiplied by id.
func (t Tensor) BindExperts(data uintptr, n int, stride int64) {
	C.bm_tensor_bind(t.t, C.uintptr_t(data), C.int64_t(max(n, 2)), C.size_t(stride))
}

// ChatTemplate is the template the file carries, or "".
func (m *Model) ChatTemplate() string {
	t := C.llama_model_chat_template(m.c(), nil)
	if t == nil {
		return ""
	}
	return C.GoString(t)
}
