#define _GNU_SOURCE
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "pool.h"
#include "repack.h"

// Rows of noise that are quantised; slices are made of them, turned, because
// some types take milliseconds a row.
enum { NOISE_ROWS = 16 };

// --- devices --------------------------------------------------------------

int bm_device_count(void) { return (int) ggml_backend_dev_count(); }

void bm_device_at(int i, bm_device * out) {
    memset(out, 0, sizeof *out);
    ggml_backend_dev_t dev = ggml_backend_dev_get((size_t) i);
    struct ggml_backend_dev_props props;
    memset(&props, 0, sizeof props);
    ggml_backend_dev_get_props(dev, &props);
    snprintf(out->name, sizeof out->name, "%s", props.name ? props.name : "");
    snprintf(out->description, sizeof out->description, "%s", props.description ? props.description : "");
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(dev);
    snprintf(out->backend, sizeof out->backend, "%s", reg ? ggml_backend_reg_name(reg) : "");
    out->type = props.type;
    out->mem_free = props.memory_free;
    out->mem_total = props.memory_total;
    out->host_buffer = props.caps.host_buffer;
    out->host_ptr = props.caps.buffer_from_host_ptr;
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(dev);
    out->host_memory = buft && ggml_backend_buft_is_host(buft);
}

int bm_device_find(const char * name) {
    for (int i = 0; i < bm_device_count(); i++) {
        const char * n = ggml_backend_dev_name(ggml_backend_dev_get((size_t) i));
        if (n && strcmp(n, name) == 0) {
            return i;
        }
    }
    return -1;
}

// --- weights --------------------------------------------------------------

struct bm_matmul {
    bm_matmul_spec spec;
    ggml_backend_dev_t dev;
    ggml_backend_t backend;
    struct ggml_context * ctx;
    struct ggml_tensor ** w;
    ggml_backend_buffer_t buffer;
    bm_repack * layout;
    struct ggml_threadpool * pool; // of the CPU backend
    uint8_t * noise; // NOISE_ROWS quantised rows
    uint8_t * slice; // one expert, as the file would hold it
    size_t row;      // bytes of a row
};

static uint32_t next(uint32_t * s) {
    *s ^= *s << 13;
    *s ^= *s >> 17;
    *s ^= *s << 5;
    return *s;
}

static void fill(float * v, int64_t n, uint32_t seed) {
    for (int64_t i = 0; i < n; i++) {
        v[i] = (float) (int32_t) next(&seed) * (1.0f / 2147483648.0f);
    }
}

static void make_noise(bm_matmul * m) {
    const bm_matmul_spec * s = &m->spec;
    float * src = malloc(NOISE_ROWS * s->cols * sizeof *src);
    float * weight = malloc(s->cols * sizeof *weight);
    fill(src, NOISE_ROWS * s->cols, 12345);
    for (int64_t i = 0; i < s->cols; i++) {
        weight[i] = 1.0f;
    }
    m->noise = calloc(NOISE_ROWS, m->row);
    ggml_quantize_chunk(s->type, src, m->noise, 0, NOISE_ROWS, s->cols, ggml_quantize_requires_imatrix(s->type) ? weight : NULL);
    free(src);
    free(weight);
}

static const uint8_t * noise_row(const bm_matmul * m, int expert, int64_t r) {
    return m->noise + ((expert * 5 + r + r / NOISE_ROWS) % NOISE_ROWS) * m->row;
}

// Fills m->slice with the expert's bytes.
static void make_slice(bm_matmul * m, int expert) {
    for (int64_t r = 0; r < m->spec.rows; r++) {
        memcpy(m->slice + r * m->row, noise_row(m, expert, r), m->row);
    }
}

// On the CPU, threads that persist between graphs, as a run has them: created
// for each pass they may start on one processor and hand it to each other at
// barriers.
static void set_threads(bm_matmul * m) {
    int n = m->spec.threads;
    if (n <= 0) {
        return;
    }
    if (ggml_backend_dev_type(m->dev) == GGML_BACKEND_DEVICE_TYPE_CPU) {
        m->pool = bm_pool_use(m->backend, n);
        return;
    }
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(m->dev);
    void (*set)(ggml_backend_t, int) = reg ? ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads") : NULL;
    if (set) {
        set(m->backend, n);
    }
}

// Filling fresh small pages takes longer than all the passes over them.
static void prefer_huge_pages(ggml_backend_buffer_t buffer) {
#ifdef __linux__
    if (ggml_backend_buffer_is_host(buffer)) {
        uintptr_t base = (uintptr_t) ggml_backend_buffer_get_base(buffer);
        uintptr_t from = (base + 4095) & ~(uintptr_t) 4095;
        uintptr_t to = (base + ggml_backend_buffer_get_size(buffer)) & ~(uintptr_t) 4095;
        if (to > from) {
            (void) madvise((void *) from, to - from, MADV_HUGEPAGE);
        }
    }
#else
    (void) buffer;
#endif
}

static bool place(bm_matmul * m, char * why, size_t len) {
    const bm_matmul_spec * s = &m->spec;
    m->backend = ggml_backend_dev_init(m->dev, NULL);
    if (!m->backend) {
        snprintf(why, len, "the device could not be opened");
        return false;
    }
    set_threads(m);
    struct ggml_init_params p = { .mem_size = (s->tensors + 1) * ggml_tensor_overhead(), .no_alloc = true };
    m->ctx = ggml_init(p);
    m->w = calloc(s->tensors, sizeof *m->w);
    for (int i = 0; i < s->tensors; i++) {
        m->w[i] = ggml_new_tensor_3d(m->ctx, s->type, s->cols, s->rows, s->experts);
    }
    m->buffer = ggml_backend_alloc_ctx_tensors_from_buft(m->ctx, ggml_backend_dev_buffer_type(m->dev));
    if (!m->buffer) {
        snprintf(why, len, "the device has no room for %zu bytes of weights", s->tensors * ggml_nbytes(m->w[0]));
        return false;
    }
    ggml_backend_buffer_set_usage(m->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    prefer_huge_pages(m->buffer);
    return true;
}

bm_matmul * bm_matmul_new(bm_matmul_spec s, char * why, size_t len) {
    bm_matmul * m = calloc(1, sizeof *m);
    m->spec = s;
    m->dev = ggml_backend_dev_get((size_t) s.device);
    m->row = ggml_row_size(s.type, s.cols);
    if (!place(m, why, len)) {
        bm_matmul_free(m);
        return NULL;
    }
    m->slice = malloc(m->row * s.rows);
    make_noise(m);
    for (int e = 0; e < s.experts; e++) {
        make_slice(m, e);
        for (int i = 0; i < s.tensors; i++) {
            ggml_backend_tensor_set(m->w[i], m->slice, e * m->row * s.rows, m->row * s.rows);
        }
    }
    return m;
}

void bm_matmul_free(bm_matmul * m) {
    if (!m) {
        return;
    }
    bm_repack_free(m->layout);
    if (m->buffer) {
        ggml_backend_buffer_free(m->buffer);
    }
    if (m->ctx) {
        ggml_free(m->ctx);
    }
    if (m->backend) {
        ggml_backend_free(m->backend);
    }
    bm_pool_free(m->pool);
    free(m->w);
    free(m->noise);
    free(m->slice);
    free(m);
}

bool bm_matmul_repack(bm_matmul * m) {
    const bm_matmul_spec * s = &m->spec;
    m->layout = bm_repack_new(s->type, s->cols, s->rows);
    if (!m->layout) {
        return false;
    }
    for (int e = 0; e < s->experts; e++) {
        make_slice(m, e);
        for (int i = 0; i < s->tensors; i++) {
            bm_repack_run(m->layout, (char *) m->w[i]->data + e * m->w[i]->nb[2], m->slice);
        }
    }
    for (int i = 0; i < s->tensors; i++) {
        bm_repack_mark(m->layout, m->w[i]);
    }
    return true;
}

double bm_matmul_copy(bm_matmul * m, size_t n) {
    char * base = ggml_backend_buffer_get_base(m->buffer);
    size_t half = ggml_backend_buffer_get_size(m->buffer) / 2;
    n = n < half ? n : half;
    int64_t start = ggml_time_us();
    memcpy(base, base + half, n);
    return (double) (ggml_time_us() - start) * 1e-6 / (double) n;
}

double bm_matmul_send(bm_matmul * m, size_t n) {
    size_t slice = m->row * m->spec.rows, sent = 0;
    uint8_t back[1];
    int64_t start = ggml_time_us();
    for (int e = 0; sent < n; e = (e + 1) % m->spec.experts) {
        make_slice(m, e);
        ggml_backend_tensor_set(m->w[0], m->slice, e * slice, slice);
        sent += slice;
    }
    ggml_backend_tensor_get(m->w[0], back, 0, sizeof back); // waits for all of it
    return (double) (ggml_time_us() - start) * 1e-6;
}

// --- graphs ---------------------------------------------------------------

struct bm_matmul_graph {
    bm_matmul * m;
    struct ggml_context * ctx;
    struct ggml_cgraph * graph;
    struct ggml_tensor * b;
    struct ggml_tensor * last;
    ggml_backend_buffer_t buffer;
    int32_t * ids; // of the last node
    float * act;
    int tokens, used;
};

static void fill_ids(bm_matmul_graph * g, struct ggml_tensor * ids, int node, int experts) {
    int n = g->tokens * g->used;
    for (int i = 0; i < n; i++) {
        int t = i / g->used, k = i % g->used;
        g->ids[i] = (node * g->used + t * 7 + k) % experts;
    }
    ggml_backend_tensor_set(ids, g->ids, 0, n * sizeof *g->ids);
}

bm_matmul_graph * bm_matmul_graph_new(bm_matmul * m, int nodes, int tokens, int used, int experts, char * why, size_t len) {
    bm_matmul_graph * g = calloc(1, sizeof *g);
    g->m = m;
    g->tokens = tokens;
    g->used = used;
    g->ids = malloc(sizeof *g->ids * tokens * used);
    size_t most = 2 * (size_t) nodes + m->spec.tensors + 8; // a node, its ids, the weights
    struct ggml_init_params p = {
        .mem_size = most * ggml_tensor_overhead() + ggml_graph_overhead_custom(most, false),
        .no_alloc = true,
    };
    g->ctx = ggml_init(p);
    g->graph = ggml_new_graph_custom(g->ctx, most, false);
    g->b = ggml_new_tensor_3d(g->ctx, GGML_TYPE_F32, m->spec.cols, 1, tokens);
    struct ggml_tensor ** ids = malloc(nodes * sizeof *ids);
    int per = experts / used > 0 ? experts / used : 1; // nodes that go through one tensor
    for (int i = 0; i < nodes; i++) {
        ids[i] = ggml_new_tensor_2d(g->ctx, GGML_TYPE_I32, used, tokens);
        g->last = ggml_mul_mat_id(g->ctx, m->w[i / per % m->spec.tensors], g->b, ids[i]);
        ggml_build_forward_expand(g->graph, g->last);
    }
    if (!ggml_backend_dev_supports_op(m->dev, g->last)) {
        snprintf(why, len, "the device does not run the expert matmul in %s", ggml_type_name(m->spec.type));
        free(ids);
        bm_matmul_graph_free(g);
        return NULL;
    }
    g->buffer = ggml_backend_alloc_ctx_tensors_from_buft(g->ctx, ggml_backend_dev_buffer_type(m->dev));
    if (!g->buffer) {
        snprintf(why, len, "the device has no room for the probe's results");
        free(ids);
        bm_matmul_graph_free(g);
        return NULL;
    }
    for (int i = 0; i < nodes; i++) {
        fill_ids(g, ids[i], i % per, experts);
    }
    free(ids);
    g->act = malloc(sizeof *g->act * m->spec.cols * tokens);
    fill(g->act, m->spec.cols * tokens, 777);
    ggml_backend_tensor_set(g->b, g->act, 0, sizeof *g->act * m->spec.cols * tokens);
    return g;
}

void bm_matmul_graph_free(bm_matmul_graph * g) {
    if (!g) {
        return;
    }
    if (g->buffer) {
        ggml_backend_buffer_free(g->buffer);
    }
    ggml_free(g->ctx);
    free(g->ids);
    free(g->act);
    free(g);
}

double bm_matmul_run(bm_matmul_graph * g) {
    float probe;
    int64_t start = ggml_time_us();
    if (ggml_backend_graph_compute(g->m->backend, g->graph) != GGML_STATUS_SUCCESS) {
        return -1;
    }
    // Some devices return at once; reading a result waits for it.
    ggml_backend_tensor_get(g->last, &probe, 0, sizeof probe);
    return (double) (ggml_time_us() - start) * 1e-6;
}

void bm_matmul_out(bm_matmul_graph * g, float * out, int tokens) {
    ggml_backend_tensor_get(g->last, out, 0, sizeof *out * g->m->spec.rows * g->used * tokens);
}

void bm_matmul_reference(bm_matmul_graph * g, float * out, int tokens) {
    const bm_matmul * m = g->m;
    const struct ggml_type_traits * traits = ggml_get_type_traits(m->spec.type);
    int64_t cols = m->spec.cols, rows = m->spec.rows;
    float * plain = malloc(sizeof *plain * NOISE_ROWS * cols);
    for (int r = 0; r < NOISE_ROWS; r++) {
        if (m->spec.type == GGML_TYPE_F32) {
            memcpy(plain + r * cols, m->noise + r * m->row, m->row);
        } else {
            traits->to_float(m->noise + r * m->row, plain + r * cols, cols);
        }
    }
    // Rows repeat, so one dot product per row of noise and token is enough.
    float dot[NOISE_ROWS];
    for (int t = 0; t < tokens; t++) {
        for (int r = 0; r < NOISE_ROWS; r++) {
            double sum = 0;
            for (int64_t i = 0; i < cols; i++) {
                sum += (double) plain[r * cols + i] * g->act[t * cols + i];
            }
            dot[r] = (float) sum;
        }
        for (int k = 0; k < g->used; k++) {
            int expert = g->ids[t * g->used + k];
            for (int64_t r = 0; r < rows; r++) {
                *out++ = dot[(noise_row(m, expert, r) - m->noise) / m->row];
            }
        }
    }
    free(plain);
}

bool bm_device_runs(int device, int type, int64_t cols, int64_t rows, int experts, int used, int tokens) {
    struct ggml_init_params p = { .mem_size = 8 * ggml_tensor_overhead(), .no_alloc = true };
    struct ggml_context * ctx = ggml_init(p);
    struct ggml_tensor * w = ggml_new_tensor_3d(ctx, type, cols, rows, experts);
    struct ggml_tensor * b = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, cols, 1, tokens);
    struct ggml_tensor * ids = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, used, tokens);
    bool ok = ggml_backend_dev_supports_op(ggml_backend_dev_get((size_t) device), ggml_mul_mat_id(ctx, w, b, ids));
    ggml_free(ctx);
    return ok;
}
