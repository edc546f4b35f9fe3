#ifndef BM_POOL_H
#define BM_POOL_H

#include <stdbool.h>

struct ggml_threadpool;

// Threads of the CPU backend that persist between graphs; a graph computed
// without them creates its own anew. NULL where the module offers none.
struct ggml_threadpool * bm_pool_new(int threads, bool paused);
void bm_pool_free(struct ggml_threadpool * pool);

#endif
