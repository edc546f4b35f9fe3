package llama

/*
#include <stdlib.h>
#include "capacity.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"unsafe"
)

// FitRow is what a fitted placement holds in one memory, bytes.
type FitRow struct {
	Free, Total             int64 // as the device says; 0 on the host
	Model, Context, Compute int64
	Layers                  int
}

// Fitted is the capacity fitter's placement.
type Fitted struct {
	GPULayers int // the output counts as one
	Host      FitRow
	Devices   []FitRow
	Patterns  []string // tensors of placed layers left on the host
}

// fitMu: the fitter changes llama.cpp's process-wide log.
var fitMu sync.Mutex

// Fit places a model's layers on devices, leaving margins bytes of each free.
// The context is c's; nothing but metadata is read.
func Fit(path string, layers int, c ContextParams, devs []Device, margins []int64) (*Fitted, error) {
	dir, err := LibDir()
	if err != nil {
		return nil, err
	}
	libs, _ := filepath.Glob(filepath.Join(dir, "libllama-common.*"))
	if len(libs) == 0 || len(devs) == 0 {
		return nil, fmt.Errorf("this build has no capacity fitter (libllama-common in %s), or no device to place layers on", dir)
	}
	fitMu.Lock()
	defer fitMu.Unlock()
	clib, cpath := C.CString(libs[0]), C.CString(path)
	defer C.free(unsafe.Pointer(clib))
	defer C.free(unsafe.Pointer(cpath))
	list, room := make([]C.int, len(devs)), make([]C.size_t, len(devs))
	for i, d := range devs {
		list[i], room[i] = C.int(d.i), C.size_t(margins[i])
	}
	out := (*C.bm_fit)(C.calloc(1, C.size_t(unsafe.Sizeof(C.bm_fit{}))))
	defer C.free(unsafe.Pointer(out))
	C.bm_fit_run(clib, cpath, C.int(layers), c.project(), &list[0], C.int(len(devs)), &room[0], out)
	switch out.status {
	case 0:
		return fitted(out, len(devs)), nil
	case 1:
		return nil, errors.New("the capacity fitter finds no placement that fits")
	case 3:
		return nil, fmt.Errorf("%s has no capacity fitter that this build knows", libs[0])
	}
	return nil, lastError("fitting the model to the devices")
}

func fitted(out *C.bm_fit, n int) *Fitted {
	f := &Fitted{GPULayers: int(out.n_gpu_layers), Host: fitRow(&out.host)}
	for i := range n {
		f.Devices = append(f.Devices, fitRow(&out.rows[i]))
	}
	for i := range int(out.n_patterns) {
		f.Patterns = append(f.Patterns, C.GoString(&out.patterns[i][0]))
	}
	return f
}

func fitRow(r *C.bm_fit_row) FitRow {
	return FitRow{
		Free: int64(r.free), Total: int64(r.total), Layers: int(r.layers),
		Model: int64(r.model), Context: int64(r.context), Compute: int64(r.compute),
	}
}
