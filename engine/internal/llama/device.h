// Devices beyond the host: how they come to be known, and which matmuls of a
// wide graph they are handed.
#ifndef BMOE_DEVICE_H
#define BMOE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-backend.h"

// Has a fault end the process by its signal, as it would end any program, and
// leave nothing behind: for a process that may be lost, whose parent asks how.
void bm_die_by_signal(void);

// Loads one backend module. False when it is not there or will not load.
bool bm_module_load(const char * path);

// Registers an RPC server's devices and returns the index of the first in the
// list of all; -1 without the module, -2 when the server has none. Ends the
// process when nothing answers at endpoint.
int bm_rpc_register(const char * endpoint, int * n);

ggml_backend_dev_t bm_device_get(int i);

// The backends that are loaded, whether or not they see a device.
int bm_backend_count(void);
const char * bm_backend_name(int i);

// n bytes of the device's memory, every one written; NULL when there is no room.
ggml_backend_buffer_t bm_device_hold(int i, size_t n);
// Waits until the device has done what it was told to.
void bm_device_wait(int i);

// Whether matmuls of host weights that are at least least tokens wide are given
// to the device. Until it is first called a device decides that for itself.
// False where all slots of the table are taken.
bool bm_offload(ggml_backend_dev_t dev, bool on, int64_t least);

#endif
