#include "device.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "ggml.h"
#include "ggml-backend-impl.h"

void bm_die_by_signal(void) {
    static const int deadly[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        signal(deadly[i], SIG_DFL);
    }
    struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    setenv("GGML_NO_BACKTRACE", "1", 1);
}

bool bm_module_load(const char * path) { return ggml_backend_load(path) != NULL; }

int bm_rpc_register(const char * endpoint, int * n) {
    ggml_backend_reg_t rpc = ggml_backend_reg_by_name("RPC");
    ggml_backend_reg_t (*add)(const char *) = rpc ? ggml_backend_reg_get_proc_address(rpc, "ggml_backend_rpc_add_server") : NULL;
    if (!add) {
        return -1;
    }
    ggml_backend_reg_t reg = add(endpoint);
    if (!reg) {
        return -2;
    }
    int first = (int) ggml_backend_dev_count();
    ggml_backend_register(reg);
    *n = (int) ggml_backend_dev_count() - first;
    return *n > 0 ? first : -2;
}

int bm_backend_count(void) { return (int) ggml_backend_reg_count(); }

const char * bm_backend_name(int i) { return ggml_backend_reg_name(ggml_backend_reg_get((size_t) i)); }

ggml_backend_buffer_t bm_device_hold(int i, size_t n) {
    ggml_backend_buffer_t b = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(bm_device_get(i)), n);
    if (b) {
        ggml_backend_buffer_clear(b, 1); // an untouched buffer takes nothing yet
        bm_device_wait(i);
    }
    return b;
}

void bm_device_wait(int i) {
    size_t free, total; // an answer, which comes after what was sent before
    ggml_backend_dev_memory(bm_device_get(i), &free, &total);
}

ggml_backend_dev_t bm_device_get(int i) { return i < 0 ? NULL : ggml_backend_dev_get((size_t) i); }

// --- which matmuls are handed over ----------------------------------------

// llama.cpp asks a device whether it wants an op whose weights lie with the
// host. Devices answer by a width of their own, and an RPC server not at all;
// a run must be able to say how wide, and to say no. So the question is
// answered here, for the devices that a run was told to use.
typedef struct {
    ggml_backend_dev_t dev;
    bool (*own)(ggml_backend_dev_t dev, const struct ggml_tensor * op);
    atomic_bool on;
    _Atomic int64_t least;
} offload;

enum { OFFLOADS = 256 };
static offload table[OFFLOADS];
static atomic_int n_table;
static pthread_mutex_t table_mu = PTHREAD_MUTEX_INITIALIZER;

static offload * entry(ggml_backend_dev_t dev) {
    int n = atomic_load(&n_table);
    for (int i = 0; i < n; i++) {
        if (table[i].dev == dev) {
            return &table[i];
        }
    }
    return NULL;
}

static int64_t tokens_of(const struct ggml_tensor * op) {
    switch (op->op) {
        case GGML_OP_MUL_MAT:    return op->ne[1];
        case GGML_OP_MUL_MAT_ID: return op->ne[2];
        default:                 return -1;
    }
}

static bool wanted(ggml_backend_dev_t dev, const struct ggml_tensor * op) {
    offload * o = entry(dev);
    if (!o || !atomic_load(&o->on)) {
        return false;
    }
    int64_t tokens = tokens_of(op);
    if (tokens >= 0) {
        return tokens >= atomic_load(&o->least);
    }
    return o->own && o->own(dev, op);
}

bool bm_offload(ggml_backend_dev_t dev, bool on, int64_t least) {
    pthread_mutex_lock(&table_mu);
    offload * o = entry(dev);
    int n = atomic_load(&n_table);
    if (!o && n < OFFLOADS) {
        o = &table[n];
        o->dev = dev;
        o->own = dev->iface.offload_op;
        atomic_store(&n_table, n + 1);
    }
    if (o) {
        atomic_store(&o->least, least);
        atomic_store(&o->on, on);
        dev->iface.offload_op = wanted;
    }
    pthread_mutex_unlock(&table_mu);
    return o != NULL;
}
