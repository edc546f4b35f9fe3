// Probes of compute devices: what is registered, and one expert matmul timed on
// it. Everything here may end the process it runs in, because a driver may; the
// caller runs it in a process that can be lost.
#ifndef BMOE_PROBE_H
#define BMOE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char     name[64];
    char     description[128];
    char     backend[64]; // of the module that registered it
    int      type; // enum ggml_backend_dev_type
    uint64_t mem_free, mem_total;
    bool     host_memory; // its buffers are memory the CPU reads
    bool     host_buffer;
    bool     host_ptr;    // advertises wrapping memory of ours
} bm_device;

int  bm_device_count(void);
void bm_device_at(int i, bm_device * out);
int  bm_device_find(const char * name); // -1: none

typedef struct {
    int     device;
    int     type; // enum ggml_type of the expert weights
    int64_t cols, rows;
    int     experts; // of one tensor
    int     tensors; // like those of as many layers
    int     threads; // of the CPU backend
} bm_matmul_spec;

typedef struct bm_matmul bm_matmul;
typedef struct bm_matmul_graph bm_matmul_graph;

// Weights of that shape on the device, filled with quantised noise that is the
// same on every device. NULL with a reason in why.
bm_matmul * bm_matmul_new(bm_matmul_spec s, char * why, size_t len);
void bm_matmul_free(bm_matmul * m);
// Lays the weights out as the CPU backend prefers; false when it has no other
// layout for them. CPU only, and for good.
bool bm_matmul_repack(bm_matmul * m);

// nodes matmuls of tokens tokens, each over used of a tensor's first experts;
// one node after the other goes through all experts of all tensors.
bm_matmul_graph * bm_matmul_graph_new(bm_matmul * m, int nodes, int tokens, int used, int experts, char * why, size_t len);
void bm_matmul_graph_free(bm_matmul_graph * g);
// One pass, until its result can be read. Seconds, or negative on failure.
double bm_matmul_run(bm_matmul_graph * g);
// Results of the last node's first tokens: rows x used x tokens floats.
void bm_matmul_out(bm_matmul_graph * g, float * out, int tokens);
// The same computed in plain floats from the weights as they were quantised.
void bm_matmul_reference(bm_matmul_graph * g, float * out, int tokens);
// Seconds to copy n bytes between resident pages of the weights; CPU only.
double bm_matmul_copy(bm_matmul * m, size_t n);
// Seconds to send n bytes of weights to the device.
double bm_matmul_send(bm_matmul * m, size_t n);
// Whether the device runs the op for this type and shape at all.
bool bm_device_runs(int device, int type, int64_t cols, int64_t rows, int experts, int used, int tokens);

#endif
