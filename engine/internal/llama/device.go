package llama

/*
#include <stdlib.h>
#include "bridge.h"
#include "device.h"
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"
)

// Device is a registered device beyond the host's processor.
type Device struct{ i int }

// rpcModule is loaded only when a server is named: were it beside the others,
// every run would load it. A release may carry it in either place.
var rpcModule = sync.OnceValue(func() error {
	if err := Init(); err != nil {
		return err
	}
	dir, err := LibDir()
	if err != nil {
		return err
	}
	for _, path := range []string{filepath.Join(dir, "rpc", "libggml-rpc.so"), filepath.Join(dir, "libggml-rpc.so")} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		cpath := C.CString(path)
		ok := bool(C.bm_module_load(cpath))
		C.free(unsafe.Pointer(cpath))
		if !ok {
			return lastError("loading " + path)
		}
		return nil
	}
	return fmt.Errorf("--rpc: this build carries no RPC module (libggml-rpc.so in %s): type `make rpc`", filepath.Join(dir, "rpc"))
})

// RegisterRPC makes an RPC server's devices known to this process, for good,
// and returns them. Where nothing answers, the process ends.
func RegisterRPC(endpoint string) ([]Device, error) {
	if err := rpcModule(); err != nil {
		return nil, err
	}
	cend := C.CString(endpoint)
	defer C.free(unsafe.Pointer(cend))
	var n C.int
	first := int(C.bm_rpc_register(cend, &n))
	if first < 0 {
		return nil, lastError("registering the RPC server " + endpoint)
	}
	out := make([]Device, int(n))
	for i := range out {
		out[i] = Device{first + i}
	}
	return out, nil
}

// DieBySignal has a fault of a driver end this process by its signal, so that
// its parent sees which: Go would print its goroutines and exit with a code.
func DieBySignal() error {
	if err := Init(); err != nil { // which installs a handler of its own
		return err
	}
	C.bm_die_by_signal()
	return nil
}

// FindDevice is the device of that name.
func FindDevice(name string) (Device, error) {
	i, err := deviceIndex(name)
	return Device{i}, err
}

// Offload says whether matmuls over host weights at least so many tokens wide
// are given to the device. A context takes it up at its next Reserve.
func (d Device) Offload(on bool, least int) error {
	if !bool(C.bm_offload(C.bm_device_get(C.int(d.i)), C.bool(on), C.int64_t(least))) {
		return fmt.Errorf("more devices have been used by this process than it keeps track of")
	}
	return nil
}

// Info is what the device says about itself.
func (d Device) Info() (DeviceInfo, error) {
	all, err := Devices()
	if err != nil {
		return DeviceInfo{}, err
	}
	return all[d.i], nil
}

// Hold takes and fills so many bytes of the device's memory until release is
// called.
func (d Device) Hold(bytes int64) (release func(), err error) {
	b := C.bm_device_hold(C.int(d.i), C.size_t(bytes))
	if b == nil {
		return nil, fmt.Errorf("the device has no room for %d bytes", bytes)
	}
	return func() {
		C.ggml_backend_buffer_free(b)
		C.bm_device_wait(C.int(d.i))
	}, nil
}

// linkedBackends is how many backends were there before any module was loaded.
var linkedBackends int

// Backends names the backends that came linked and those that were loaded as
// modules, the processor's included. One that sees no device is among them.
func Backends() (linked, loaded []string, err error) {
	if err := Init(); err != nil {
		return nil, nil, err
	}
	all := make([]string, int(C.bm_backend_count()))
	for i := range all {
		all[i] = C.GoString(C.bm_backend_name(C.int(i)))
	}
	n := min(linkedBackends, len(all))
	return all[:n], all[n:], nil
}

// cDevices is a NULL-terminated list for llama.cpp; free releases it.
func cDevices(devs []Device) (arr *C.ggml_backend_dev_t, free func()) {
	arr = (*C.ggml_backend_dev_t)(C.calloc(C.size_t(len(devs)+1), C.size_t(unsafe.Sizeof(C.ggml_backend_dev_t(nil)))))
	view := unsafe.Slice(arr, len(devs)+1)
	for i, d := range devs {
		view[i] = C.bm_device_get(C.int(d.i))
	}
	return arr, func() { C.free(unsafe.Pointer(arr)) }
}
