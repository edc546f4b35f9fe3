#include "pool.h"

#include <stddef.h>

#include "ggml.h"
#include "ggml-backend.h"

static void * cpu_function(const char * name) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_reg_t reg = cpu ? ggml_backend_dev_backend_reg(cpu) : NULL;
    return reg ? ggml_backend_reg_get_proc_address(reg, name) : NULL;
}

struct ggml_threadpool * bm_pool_new(int threads, bool paused) {
    struct ggml_threadpool * (*create)(struct ggml_threadpool_params *) = cpu_function("ggml_threadpool_new");
    if (!create || !cpu_function("ggml_threadpool_free")) {
        return NULL;
    }
    struct ggml_threadpool_params p = ggml_threadpool_params_default(threads);
    p.paused = paused;
    return create(&p);
}

struct ggml_threadpool * bm_pool_use(struct ggml_backend * backend, int threads) {
    void (*count)(ggml_backend_t, int) = cpu_function("ggml_backend_set_n_threads");
    void (*use)(ggml_backend_t, ggml_threadpool_t) = cpu_function("ggml_backend_cpu_set_threadpool");
    if (count) {
        count(backend, threads);
    }
    struct ggml_threadpool * pool = use ? bm_pool_new(threads, false) : NULL;
    if (pool) {
        use(backend, pool);
    }
    return pool;
}

void bm_pool_free(struct ggml_threadpool * pool) {
    void (*destroy)(struct ggml_threadpool *) = pool ? cpu_function("ggml_threadpool_free") : NULL;
    if (destroy) {
        destroy(pool);
    }
}
