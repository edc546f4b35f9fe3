// A graph of llama.cpp's computed again without its weights.
#ifndef BMOE_REPLAY_H
#define BMOE_REPLAY_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_cgraph;
struct ggml_tensor;
typedef struct bm_replay bm_replay;

// Whether the tensor computes nothing: it is only another way to look at one.
bool bm_only_looks(const struct ggml_tensor * t);
// Copies a graph's shape onto the CPU, memory of its own under it, and leaves out
// the matmuls over weights and lookups in them. NULL where it cannot be copied.
bm_replay * bm_replay_new(struct ggml_cgraph * graph, int threads);
void bm_replay_free(bm_replay * r);
// Nodes that are computed.
int bm_replay_nodes(const bm_replay * r);
// One pass: seconds, or negative on failure.
double bm_replay_run(bm_replay * r);

#ifdef __cplusplus
}
#endif

#endif
