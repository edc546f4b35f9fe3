#define _GNU_SOURCE
#include "bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "guard.h"
#include "hostbuf.h"
#include "pool.h"

// --- backends and log -----------------------------------------------------

static pthread_mutex_t log_mu = PTHREAD_MUTEX_INITIALIZER;
static char log_error[1024];
static atomic_bool log_verbose;

// llama.cpp logs to one process-wide callback; errors are kept for the caller,
// the rest is printed only when asked for.
static void on_log(enum ggml_log_level level, const char * text, void * ud) {
    (void) ud;
    if (level == GGML_LOG_LEVEL_ERROR) {
        pthread_mutex_lock(&log_mu);
        size_t used = strlen(log_error);
        if (used + 1 < sizeof log_error) {
            snprintf(log_error + used, sizeof log_error - used, "%s", text);
        }
        pthread_mutex_unlock(&log_mu);
    }
    if (atomic_load(&log_verbose)) {
        fputs(text, stderr);
    }
}

void bm_backends_load(const char * dir) {
    ggml_log_set(on_log, NULL);
    llama_log_set(on_log, NULL);
    ggml_backend_load_all_from_path(dir);
    llama_backend_init();
}

void bm_log_verbose(bool on) { atomic_store(&log_verbose, on); }

void bm_last_error(char * buf, size_t len) {
    pthread_mutex_lock(&log_mu);
    snprintf(buf, len, "%s", log_error);
    log_error[0] = 0;
    pthread_mutex_unlock(&log_mu);
}

// --- model ----------------------------------------------------------------

struct bm_model {
    struct llama_model * model;
    struct gguf_context * gguf;
    struct ggml_context * meta[256]; // tensor descriptors of each shard
    int n_meta;
    struct ggml_tensor ** tensors;
    int n_tensors, cap;
};

static void collect_tensor(struct ggml_tensor * t, void * ud) {
    bm_model * m = ud;
    if (m->n_tensors == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 1024;
        m->tensors = realloc(m->tensors, m->cap * sizeof *m->tensors);
    }
    m->tensors[m->n_tensors++] = t;
}

// llama_model_init_from_user takes one gguf context: the tensors of the later
// shards are added to the first one's. Their merged offsets mean nothing.
static bool open_gguf(bm_model * m, char ** paths, int n) {
    if (n > (int) (sizeof m->meta / sizeof *m->meta)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        struct gguf_init_params p = { .no_alloc = true, .ctx = &m->meta[i] };
        struct gguf_context * g = gguf_init_from_file(paths[i], p);
        if (!g) {
            return false;
        }
        m->n_meta = i + 1;
        if (i == 0) {
            m->gguf = g;
            continue;
        }
        for (struct ggml_tensor * t = ggml_get_first_tensor(m->meta[i]); t; t = ggml_get_next_tensor(m->meta[i], t)) {
            gguf_add_tensor(m->gguf, t);
        }
        gguf_free(g);
    }
    return true;
}

// used_override fills a list of one override of the routing width, and its end.
static const struct llama_model_kv_override * used_override(struct llama_model_kv_override * kv, bm_model_params p) {
    if (!p.used_key) {
        return NULL;
    }
    memset(kv, 0, 2 * sizeof *kv);
    kv[0].tag = LLAMA_KV_OVERRIDE_TYPE_INT;
    snprintf(kv[0].key, sizeof kv[0].key, "%s", p.used_key);
    kv[0].val_i64 = p.n_used;
    return kv;
}

static struct llama_model * load_stream(bm_model * m, char ** paths, int n, bm_model_params p) {
    if (!open_gguf(m, paths, n)) {
        return NULL;
    }
    struct llama_model_tensor_buft_override * o = calloc(p.n_overrides + p.n_dense + 1, sizeof *o);
    for (int i = 0; i < p.n_overrides; i++) {
        o[i].pattern = p.patterns[i];
        o[i].buft = bm_hostbuf_experts();
    }
    for (int i = 0; i < p.n_dense; i++) {
        o[p.n_overrides + i].pattern = p.dense[i];
        o[p.n_overrides + i].buft = bm_hostbuf_dense();
    }
    struct llama_model_kv_override kv[2];
    struct llama_model_params mp = llama_model_default_params();
    mp.kv_overrides = used_override(kv, p);
    mp.tensor_buft_overrides = o;
    mp.n_gpu_layers = p.n_gpu_layers;
    mp.devices = p.devices;
    mp.tensor_split = p.split;
    struct llama_model * model = llama_model_init_from_user(m->gguf, collect_tensor, m, mp);
    free(o);
    return model;
}

static struct llama_model * load_resident(char ** paths, int n, bm_model_params p) {
    struct llama_model_kv_override kv[2];
    struct llama_model_params mp = llama_model_default_params();
    mp.kv_overrides = used_override(kv, p);
    mp.load_mode = p.load_mode;
    mp.use_extra_bufts = p.repack;
    mp.n_gpu_layers = p.n_gpu_layers;
    mp.devices = p.devices;
    mp.tensor_split = p.split;
    struct llama_model_tensor_buft_override * o = calloc(p.n_overrides + 1, sizeof *o);
    for (int i = 0; i < p.n_overrides; i++) {
        o[i].pattern = p.patterns[i];
        o[i].buft = ggml_backend_dev_buffer_type(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
    }
    if (p.n_overrides > 0) {
        mp.tensor_buft_overrides = o;
    }
    struct llama_model * model = n == 1 ? llama_model_load_from_file(paths[0], mp) : llama_model_load_from_splits((const char **) paths, n, mp);
    free(o);
    return model;
}

bm_model * bm_model_new(char ** paths, int n, bm_model_params p) {
    bm_model * m = calloc(1, sizeof *m);
    m->model = p.stream ? load_stream(m, paths, n, p) : load_resident(paths, n, p);
    if (!m->model) {
        bm_model_free(m);
        return NULL;
    }
    return m;
}

void bm_model_free(bm_model * m) {
    if (!m) {
        return;
    }
    if (m->model) {
        llama_model_free(m->model);
    }
    if (m->gguf) {
        gguf_free(m->gguf);
    }
    for (int i = 0; i < m->n_meta; i++) {
        ggml_free(m->meta[i]);
    }
    free(m->tensors);
    free(m);
}

struct llama_model * bm_model_llama(bm_model * m) { return m->model; }
int bm_model_n_tensors(bm_model * m) { return m->n_tensors; }
struct ggml_tensor * bm_model_tensor(bm_model * m, int i) { return m->tensors[i]; }

// --- tensors --------------------------------------------------------------

void bm_tensor_bind(struct ggml_tensor * t, uintptr_t data, int64_t ne2, size_t nb2) {
    t->data = (void *) data;
    if (ne2 > 0) {
        t->ne[2] = ne2;
        t->nb[2] = nb2;
        t->nb[3] = nb2 * ne2;
    }
}

void bm_tensor_set(struct ggml_tensor * t, const void * data, size_t offset, size_t size) {
    ggml_backend_tensor_set(t, data, offset, size);
}

bool bm_tensor_on_host(const struct ggml_tensor * t) {
    return t->buffer && ggml_backend_buffer_is_host(t->buffer);
}

// --- context --------------------------------------------------------------

struct bm_context {
    struct llama_context * ctx;
    struct ggml_threadpool * pool;
    struct ggml_threadpool * pool_batch;
};

// Without a persistent pool each sub-graph between two callbacks would create
// its threads anew.
static void attach_pool(bm_context * c, int n, int n_batch) {
    c->pool = bm_pool_new(n, false);
    if (!c->pool) {
        return;
    }
    c->pool_batch = n_batch != n ? bm_pool_new(n_batch, true) : NULL;
    llama_attach_threadpool(c->ctx, c->pool, c->pool_batch ? c->pool_batch : c->pool);
}

bool bm_hook_eval(struct ggml_tensor * t, bool ask, void * ud); // hook.c
bool bm_hook_aborted(void * ud);                                // hook.c

bm_context * bm_context_new(bm_model * m, bm_context_params p, bm_hook * hook) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = p.n_ctx;
    cp.n_batch = p.n_batch;
    cp.n_ubatch = p.n_ubatch;
    cp.n_threads = p.n_threads;
    cp.n_threads_batch = p.n_threads_batch;
    cp.flash_attn_type = p.flash_attn;
    cp.type_k = p.type_k;
    cp.type_v = p.type_v;
    cp.op_offload = p.op_offload;
    cp.no_perf = true;
    cp.n_outputs_max = p.n_outputs;
    if (hook) {
        cp.abort_callback = bm_hook_aborted;
        cp.abort_callback_data = hook;
        cp.cb_eval = bm_hook_eval;
        cp.cb_eval_user_data = hook;
    }
    struct llama_context * ctx = llama_init_from_model(m->model, cp);
    if (!ctx) {
        return NULL;
    }
    bm_context * c = calloc(1, sizeof *c);
    c->ctx = ctx;
    attach_pool(c, p.n_threads, p.n_threads_batch);
    return c;
}

void bm_context_free(bm_context * c) {
    if (!c) {
        return;
    }
    llama_detach_threadpool(c->ctx);
    llama_free(c->ctx);
    bm_pool_free(c->pool);
    bm_pool_free(c->pool_batch);
    free(c);
}

struct llama_context * bm_context_llama(bm_context * c) { return c->ctx; }

static void on_failure(const char * what) { on_log(GGML_LOG_LEVEL_ERROR, what, NULL); }

int bm_decode(bm_context * c, int32_t * tokens, int n) {
    return bm_guard_decode(c->ctx, llama_batch_get_one(tokens, n), on_failure);
}

int bm_decode_at(bm_context * c, int32_t * tokens, const int8_t * wanted, int n) {
    struct llama_batch b = llama_batch_get_one(tokens, n);
    b.logits = (int8_t *) wanted;
    return bm_guard_decode(c->ctx, b, on_failure);
}

float * bm_logits(bm_context * c, int i) { return llama_get_logits_ith(c->ctx, i); }

// A graph like the one before is run as that was planned. Changing this setting
// and back is what makes llama.cpp forget the plan.
void bm_context_replan(bm_context * c) {
    llama_set_causal_attn(c->ctx, false);
    llama_set_causal_attn(c->ctx, true);
}

void bm_memory_clear(bm_context * c) { llama_memory_clear(llama_get_memory(c->ctx), true); }

bool bm_memory_truncate(bm_context * c, int32_t from) {
    return llama_memory_seq_rm(llama_get_memory(c->ctx), 0, from, -1);
}

// --- sampling -------------------------------------------------------------

struct llama_sampler * bm_sampler_new(float temp, int top_k, float top_p, uint32_t seed) {
    struct llama_sampler_chain_params p = llama_sampler_chain_default_params();
    p.no_perf = true;
    struct llama_sampler * s = llama_sampler_chain_init(p);
    if (temp <= 0) {
        llama_sampler_chain_add(s, llama_sampler_init_greedy());
        return s;
    }
    if (top_k > 0) {
        llama_sampler_chain_add(s, llama_sampler_init_top_k(top_k));
    }
    if (top_p < 1) {
        llama_sampler_chain_add(s, llama_sampler_init_top_p(top_p, 1));
    }
    llama_sampler_chain_add(s, llama_sampler_init_temp(temp));
    llama_sampler_chain_add(s, llama_sampler_init_dist(seed));
    return s;
}
