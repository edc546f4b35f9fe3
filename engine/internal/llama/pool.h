#ifndef BM_POOL_H
#define BM_POOL_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_backend;
struct ggml_threadpool;

// Threads of the CPU backend that persist between graphs; a graph computed
// without them creates its own anew. NULL where the module offers none.
struct ggml_threadpool * bm_pool_new(int threads, bool paused);
// Makes the CPU backend compute with so many such threads, which outlive it.
struct ggml_threadpool * bm_pool_use(struct ggml_backend * backend, int threads);
void bm_pool_free(struct ggml_threadpool * pool);

#ifdef __cplusplus
}
#endif

#endif
