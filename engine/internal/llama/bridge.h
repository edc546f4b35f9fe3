// The thin C side of the llama.cpp binding: plain structs and calls, no policy.
// Ownership: everything returned by a *_new call is freed by the matching
// *_free call; strings written into caller buffers are NUL-terminated.
#ifndef BMOE_BRIDGE_H
#define BMOE_BRIDGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml.h"
#include "ggml-backend.h"
#include "gguf.h"
#include "llama.h"

#include "repack.h"

// --- backends -------------------------------------------------------------

// Loads every backend module found in dir and only there.
void bm_backends_load(const char * dir);
// The last error llama.cpp logged on this thread's behalf; empties it.
void bm_last_error(char * buf, size_t len);
void bm_log_verbose(bool on);

// --- model ----------------------------------------------------------------

typedef struct bm_model bm_model;

typedef struct {
    bool    stream;      // weights are placed by the caller, not read by llama.cpp
    int     load_mode;   // enum llama_load_mode, for a resident load
    bool    repack;      // extra buffer types, for a resident load
    int     n_overrides;
    char ** patterns;    // tensors for the expert buffer type; resident: for the host's
    int     n_dense;
    char ** dense;       // tensors for the dense buffer type (stream only)
    float * split;       // NULL, or each device's part of the layers
    int     n_gpu_layers;
    ggml_backend_dev_t * devices; // that may be used, NULL at the end; NULL: all
    char *  used_key;    // NULL, or the key of the routing width
    int     n_used;      // to override it with
} bm_model_params;

// Loads path (and the other shards of a split file). NULL on failure.
bm_model * bm_model_new(char ** paths, int n_paths, bm_model_params params);
void bm_model_free(bm_model * m);
struct llama_model * bm_model_llama(bm_model * m);

// Tensors of a streamed model, in load order.
int bm_model_n_tensors(bm_model * m);
struct ggml_tensor * bm_model_tensor(bm_model * m, int i);

// --- hook -----------------------------------------------------------------

// Projections of a layer's experts.
enum { BM_GATE = 0, BM_UP = 1, BM_DOWN = 2, BM_GATE_UP = 3, BM_PROJ = 4 };

typedef struct {
    struct ggml_tensor * tensor;
    int layer;
    int proj;
} bm_expert;

typedef struct bm_hook bm_hook;

// A hook watches a context's graphs: it hands each layer's routing to Go and
// redirects the expert matmuls to remapped ids. handle is a cgo.Handle.
bm_hook * bm_hook_new(uintptr_t handle, int n_layers, int n_used, int max_tokens);
void bm_hook_free(bm_hook * h);
// Tells the hook about one streamed expert tensor. Call before use.
void bm_hook_expert(bm_hook * h, struct ggml_tensor * t, int layer, int proj);
void bm_hook_seal(bm_hook * h);
// Gives matmuls over embd a repacked copy of it instead: a tied head.
void bm_hook_head(bm_hook * h, struct ggml_tensor * embd, const bm_repack * layout, uintptr_t data);
// remap: the next graphs read ids through the slot table; otherwise ids stay.
// device: their expert matmuls may run on a device.
void bm_hook_mode(bm_hook * h, bool remap, bool pipeline, bool device);
// Lets the hook answer routings whose experts all have a slot in table, of
// experts entries a layer, by itself.
void bm_hook_table(bm_hook * h, const int32_t * table, int experts);
// Tells the hook, after bm_hook_table, about a tensor of the model. Of those it
// takes the routers', and with them guesses, when a layer was routed, an expert of
// the next that is not in the table.
void bm_hook_router(bm_hook * h, const struct ggml_tensor * t);
// What it answered since the last call: n numbers, which are forgotten.
int bm_hook_log(bm_hook * h, const int32_t ** log);
// How many routings were answered inside a graph, and how many of those waited
// for reads.
void bm_hook_calls(const bm_hook * h, int64_t * calls, int64_t * read);
// Stops the graph that is running, from any thread, until cleared.
void bm_hook_abort(bm_hook * h, bool on);

// --- context --------------------------------------------------------------

typedef struct {
    uint32_t n_ctx, n_batch, n_ubatch;
    int n_threads, n_threads_batch;
    int flash_attn; // -1 auto, 0 off, 1 on
    int type_k, type_v;
    bool op_offload;
    uint32_t n_outputs; // positions of one graph whose logits may be asked for
} bm_context_params;

typedef struct bm_context bm_context;

bm_context * bm_context_new(bm_model * m, bm_context_params params, bm_hook * hook);
void bm_context_free(bm_context * c);
struct llama_context * bm_context_llama(bm_context * c);
int bm_decode(bm_context * c, int32_t * tokens, int n);
// Decodes with logits for the positions that wanted is set at.
int bm_decode_at(bm_context * c, int32_t * tokens, const int8_t * wanted, int n);
// The logits of position i of the last graph, -1 for its last one.
float * bm_logits(bm_context * c, int i);
// Has the next graph planned anew: which device takes an op was changed.
void bm_context_replan(bm_context * c);
void bm_memory_clear(bm_context * c);
bool bm_memory_truncate(bm_context * c, int32_t from);

// --- sampling -------------------------------------------------------------

struct llama_sampler * bm_sampler_new(float temp, int top_k, float top_p, uint32_t seed);

// --- tensors --------------------------------------------------------------

static inline void * bm_tensor_data(struct ggml_tensor * t) { return t->data; }
void bm_tensor_bind(struct ggml_tensor * t, uintptr_t data, int64_t ne2, size_t nb2);
// Writes to a tensor in a device's memory.
void bm_tensor_set(struct ggml_tensor * t, const void * data, size_t offset, size_t size);
bool bm_tensor_on_host(const struct ggml_tensor * t);

#endif
