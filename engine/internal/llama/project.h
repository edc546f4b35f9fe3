// Projections of what a context would hold, without allocating any of it.
#ifndef BMOE_PROJECT_H
#define BMOE_PROJECT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint32_t n_ctx, n_batch, n_ubatch;
    int      flash_attn;
    int      type_k, type_v;
} bm_project_params;

typedef struct {
    char    name[64]; // of the device whose memory it is; "" is the host's
    int64_t model, context, compute;
} bm_project_row;

typedef struct bm_project bm_project;
typedef struct bm_replay bm_replay;
struct llama_context;

// Reads the metadata of a model (all shards of a split one). device, unless it
// is negative, is the one that wide matmuls are offloaded to. NULL on failure.
bm_project * bm_project_new(char ** paths, int n_paths, int n_gpu_layers, int device);
void bm_project_free(bm_project * p);
// Fills up to most rows and returns how many there are; negative on failure.
int bm_project_at(bm_project * p, bm_project_params params, bm_project_row * rows, int most);
// The same of a context that is in use: what it holds, weights included.
int bm_context_memory(const struct llama_context * ctx, bm_project_row * rows, int most);
// Nodes that compute something in the graph of one token; negative on failure.
int bm_project_nodes(bm_project * p, bm_project_params params);
// That graph without its weights, ready to be timed; NULL on failure.
bm_replay * bm_project_replay(bm_project * p, bm_project_params params, int threads);

#ifdef __cplusplus
}
#endif

#endif
