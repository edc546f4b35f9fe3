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

// FitRow is what a placement holds in one memory, bytes.
type FitRow struct{ Model, Context, Compute int64 }

// Fitted is the capacity fitter's answer.
type Fitted struct {
	GPULayers   int     // the output counts as one
	Layers      []int   // of each device; all 0 where everything fits on several
	Free, Total []int64 // of each device, as it says
	Patterns    []string
}

// Placing is a placement of layers on devices.
type Placing struct {
	GPULayers int
	Layers    []int    // of each device, GPULayers together
	Host      []string // regular expressions of those layers' tensors left on the host
}

// fitMu: the fitter changes llama.cpp's process-wide log.
var fitMu sync.Mutex

// Fit places a model's layers on devices, leaving margins bytes of each free.
// The context is c's; nothing but metadata is read. Patterns may name tensors
// that it would put on the next device; only the host is offered here.
func Fit(path string, layers int, c ContextParams, devs []Device, margins []int64) (*Fitted, error) {
	dir, err := LibDir()
	if err != nil {
		return nil, err
	}
	libs, _ := filepath.Glob(filepath.Join(dir, "libllama-common.*"))
	if len(libs) == 0 || len(devs) == 0 {
		return nil, fmt.Errorf("this build has no capacity fitter (libllama-common in %s), or no device to place layers on", dir)
	}
	if len(devs) > C.BM_FIT_DEVICES {
		return nil, fmt.Errorf("%d devices, of which at most %d can be fitted to", len(devs), C.BM_FIT_DEVICES)
	}
	fitMu.Lock()
	defer fitMu.Unlock()
	clib, cpath := C.CString(libs[0]), C.CString(path)
	defer C.free(unsafe.Pointer(clib))
	defer C.free(unsafe.Pointer(cpath))
	room := make([]C.size_t, len(devs))
	for i, n := range margins {
		room[i] = C.size_t(n)
	}
	out, free := newFit()
	defer free()
	C.bm_fit_run(clib, cpath, C.int(layers), c.project(), &indices(devs)[0], C.int(len(devs)), &room[0], out)
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

// Weigh asks what a placement would hold on the host and on each device.
// Nothing but metadata is read and nothing is allocated.
func Weigh(path string, c ContextParams, devs []Device, p Placing) (host FitRow, rows []FitRow, err error) {
	if len(devs) == 0 || len(devs) > C.BM_FIT_DEVICES || len(p.Layers) != len(devs) || len(p.Host) > C.BM_FIT_PATTERNS {
		return host, nil, fmt.Errorf("a placement of %d patterns on %d devices is more than can be weighed", len(p.Host), len(devs))
	}
	out, free := newFit()
	defer free()
	out.n_gpu_layers, out.n_patterns = C.int(p.GPULayers), C.int(len(p.Host))
	for i, n := range p.Layers {
		out.rows[i].layers = C.int(n)
	}
	for i, text := range p.Host {
		if len(text) >= len(out.patterns[i]) {
			return host, nil, fmt.Errorf("the pattern %q is longer than can be weighed", text)
		}
		for j := range len(text) {
			out.patterns[i][j] = C.char(text[j])
		}
	}
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	C.bm_fit_weigh(cpath, c.project(), &indices(devs)[0], C.int(len(devs)), out)
	if out.status != 0 {
		return host, nil, lastError("projecting what the placement holds")
	}
	for i := range devs {
		rows = append(rows, fitRow(&out.rows[i]))
	}
	return fitRow(&out.host), rows, nil
}

// newFit is a zeroed answer outside Go's memory; free releases it.
func newFit() (out *C.bm_fit, free func()) {
	out = (*C.bm_fit)(C.calloc(1, C.size_t(unsafe.Sizeof(C.bm_fit{}))))
	return out, func() { C.free(unsafe.Pointer(out)) }
}

func indices(devs []Device) []C.int {
	out := make([]C.int, len(devs))
	for i, d := range devs {
		out[i] = C.int(d.i)
	}
	return out
}

func fitted(out *C.bm_fit, n int) *Fitted {
	f := &Fitted{GPULayers: int(out.n_gpu_layers)}
	for i := range n {
		r := &out.rows[i]
		f.Layers = append(f.Layers, int(r.layers))
		f.Free, f.Total = append(f.Free, int64(r.free)), append(f.Total, int64(r.total))
	}
	for i := range int(out.n_patterns) {
		f.Patterns = append(f.Patterns, C.GoString(&out.patterns[i][0]))
	}
	return f
}

func fitRow(r *C.bm_fit_row) FitRow {
	return FitRow{Model: int64(r.model), Context: int64(r.context), Compute: int64(r.compute)}
}
