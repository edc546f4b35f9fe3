// The evaluation hook. llama.cpp calls it for every node of a graph: first to
// ask whether we want the node's result (all asks up to a wanted node come
// before any of them is computed), then, for a wanted node, when it is there.
//
// A wanted node ends a sub-graph, and the threads meet anew for the next one.
// A layer that has lately found its experts in the cache is spared that: its
// routing node, a view that nothing is computed for, becomes a call of ours
// inside the graph. If reads are needed after all, that call waits for them.
#include "bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

typedef struct {
    struct ggml_tensor ids;   // slots, laid out as the routing node's ids
    struct ggml_tensor * src; // the graph's own ids, to put back
    int32_t * slots;
    int asked;                // projections whose matmul was asked for since routing
    bool reading;             // reads were under way when the routing was answered
    bool routed;              // the running graph's routing has been answered
    bool called;              // the routing node is a call inside the graph
    const struct ggml_tensor * logits; // of the running graph, until it is routed
    const struct ggml_tensor * router; // the model's own weights for them, and
    const struct ggml_tensor * bias;   // what is added, or NULL
    float reads;              // how often routings have asked for reads lately
    int32_t view[GGML_MAX_OP_PARAMS / sizeof(int32_t)]; // what a call replaced
    int n_proj;
} layer_state;

enum { LOG_HEAD = 3 }; // layer, k, n

struct bm_hook {
    uintptr_t handle;
    int n_layers, n_used, max_tokens;
    layer_state * layers;
    bm_expert * experts;
    int n_experts, cap;
    int32_t * ids; // contiguous copy of a routing node's view
    struct ggml_tensor * embd; // with a repacked copy in head, or NULL
    struct ggml_tensor head;
    bool remap, pipeline, device, calls;
    bool plain; // only the processor's own backend computes host tensors
    struct ggml_tensor call; // what a routing node becomes
    const int32_t * table;   // the slot of each layer's experts, -1 where absent
    int table_experts;
    int64_t n_calls, n_reads; // routings answered inside a graph; that waited for reads
    float * scores;          // room for a layer's logits; NULL: nothing is guessed
    int32_t * log; // routings answered from the table: layer, k, n, then k*n ids
    int log_n, log_cap;
    uint8_t * raw; // a routing node's view, fetched from a device
    size_t raw_cap;
    atomic_bool abort;
};

static void answer(struct ggml_tensor * t, int ith, int nth, void * ud);

// make_call has ggml write down a call of answer.
static void make_call(bm_hook * h) {
    struct ggml_init_params p = { .mem_size = 2 * ggml_tensor_overhead(), .no_alloc = true };
    struct ggml_context * ctx = ggml_init(p);
    h->call = *ggml_custom_4d(ctx, GGML_TYPE_I32, 1, 1, 1, 1, NULL, 0, answer, 1, h);
    ggml_free(ctx);
}

bm_hook * bm_hook_new(uintptr_t handle, int n_layers, int n_used, int max_tokens) {
    bm_hook * h = calloc(1, sizeof *h);
    h->handle = handle;
    h->n_layers = n_layers;
    h->n_used = n_used;
    h->max_tokens = max_tokens;
    h->layers = calloc(n_layers, sizeof *h->layers);
    h->ids = malloc((size_t) n_used * max_tokens * sizeof *h->ids);
    for (int i = 0; i < n_layers; i++) {
        h->layers[i].reads = 1;
    }
    make_call(h);
    h->plain = true;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        h->plain &= ggml_backend_dev_type(ggml_backend_dev_get(i)) != GGML_BACKEND_DEVICE_TYPE_ACCEL;
    }
    return h;
}

void bm_hook_free(bm_hook * h) {
    if (!h) {
        return;
    }
    for (int i = 0; i < h->n_layers; i++) {
        free(h->layers[i].slots);
    }
    free(h->layers);
    free(h->experts);
    free(h->ids);
    free(h->raw);
    free(h->log);
    free(h->scores);
    free(h);
}

void bm_hook_expert(bm_hook * h, struct ggml_tensor * t, int layer, int proj) {
    if (h->n_experts == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 256;
        h->experts = realloc(h->experts, h->cap * sizeof *h->experts);
    }
    h->experts[h->n_experts++] = (bm_expert) { t, layer, proj };
    h->layers[layer].n_proj++;
    if (!h->layers[layer].slots) {
        h->layers[layer].slots = malloc((size_t) h->n_used * h->max_tokens * sizeof(int32_t));
    }
}

static int by_tensor(const void * a, const void * b) {
    const char * x = (const char *) ((const bm_expert *) a)->tensor;
    const char * y = (const char *) ((const bm_expert *) b)->tensor;
    return (x > y) - (x < y);
}

void bm_hook_seal(bm_hook * h) { qsort(h->experts, h->n_experts, sizeof *h->experts, by_tensor); }

void bm_hook_head(bm_hook * h, struct ggml_tensor * embd, const bm_repack * layout, uintptr_t data) {
    h->embd = embd;
    h->head = *embd;
    h->head.data = (void *) data;
    bm_repack_mark(layout, &h->head);
}

void bm_hook_mode(bm_hook * h, bool remap, bool pipeline, bool device) {
    h->remap = remap;
    h->pipeline = pipeline;
    h->device = device;
    h->calls = remap && !device && h->plain;
}

void bm_hook_table(bm_hook * h, const int32_t * table, int experts) {
    h->table = table;
    h->table_experts = experts;
    h->log_cap = h->n_layers * (LOG_HEAD + 2 * h->n_used);
    h->log = malloc(h->log_cap * sizeof *h->log);
}

void bm_hook_router(bm_hook * h, const struct ggml_tensor * t) {
    int il = -1;
    char part[8] = "";
    if (sscanf(t->name, "blk.%d.ffn_gate_inp.%7s", &il, part) != 2 || il < 0 || il >= h->n_layers) {
        return;
    }
    if (strcmp(part, "weight") == 0) {
        h->layers[il].router = t;
    } else if (strcmp(part, "bias") == 0) {
        h->layers[il].bias = t;
    }
    if (!h->scores) {
        h->scores = malloc(h->table_experts * sizeof *h->scores);
    }
}

int bm_hook_log(bm_hook * h, const int32_t ** log) {
    int n = h->log_n;
    h->log_n = 0;
    *log = h->log;
    return n;
}

void bm_hook_calls(const bm_hook * h, int64_t * calls, int64_t * read) {
    *calls = h->n_calls;
    *read = h->n_reads;
}

void bm_hook_abort(bm_hook * h, bool on) { atomic_store(&h->abort, on); }
bool bm_hook_aborted(void * ud) { return atomic_load(&((bm_hook *) ud)->abort); }

static const char TOPK[] = "ffn_moe_topk-";

// layer_named returns the layer of a node whose name begins so, or -1 for another
// node or a layer none of whose experts are streamed.
static int layer_named(const bm_hook * h, const struct ggml_tensor * t, const char * prefix) {
    size_t n = strlen(prefix);
    if (strncmp(t->name, prefix, n) != 0) {
        return -1;
    }
    int il = atoi(t->name + n);
    return il >= 0 && il < h->n_layers && h->layers[il].n_proj > 0 ? il : -1;
}

// layer_of returns the layer of a routing node.
static int layer_of(const bm_hook * h, const struct ggml_tensor * t) { return layer_named(h, t, TOPK); }

static const bm_expert * find(bm_hook * h, struct ggml_tensor * t) {
    bm_expert key = { t, 0, 0 };
    return bsearch(&key, h->experts, h->n_experts, sizeof key, by_tensor);
}

static bool on_host(const struct ggml_tensor * t) {
    ggml_backend_buffer_t buf = t->view_src ? t->view_src->buffer : t->buffer;
    return !buf || ggml_backend_buffer_is_host(buf);
}

// bytes_of is where the processor can read a tensor.
static const char * bytes_of(bm_hook * h, struct ggml_tensor * t) {
    if (!h->device || on_host(t)) {
        return t->data;
    }
    size_t n = ggml_nbytes(t);
    if (n > h->raw_cap) {
        free(h->raw);
        h->raw = malloc(n);
        h->raw_cap = n;
    }
    ggml_backend_tensor_get(t, h->raw, 0, n);
    return (const char *) h->raw;
}

// shape lays out the slot ids of a layer as a routing node's, contiguously.
static void shape(layer_state * l, const struct ggml_tensor * t) {
    l->asked = 0;
    l->routed = true;
    l->ids.type = GGML_TYPE_I32;
    l->ids.ne[0] = t->ne[0];
    l->ids.ne[1] = t->ne[1];
    l->ids.ne[2] = l->ids.ne[3] = 1;
    l->ids.nb[0] = sizeof(int32_t);
    l->ids.nb[1] = t->ne[0] * sizeof(int32_t);
    l->ids.nb[2] = l->ids.nb[3] = l->ids.nb[1] * t->ne[1];
    l->ids.data = l->slots;
    l->ids.buffer = t->buffer;
}

// How much one routing weighs in a layer's reads.
static const float LATELY = 1.0f / 16;

// A stop in the graph costs less than reads that nothing overlaps with.
static const float RARELY = 0.1f;

// resident answers a routing whose experts are all in the cache, without a step
// into Go: coming back from there wakes a thread of its runtime, which would
// take a core from the graph at every layer. What was answered is told later.
static bool resident(bm_hook * h, int il, int k, int n) {
    int m = k * n;
    if (!h->table || !h->remap || h->log_n + LOG_HEAD + m > h->log_cap) {
        return false;
    }
    const int32_t * row = h->table + (size_t) il * h->table_experts;
    int32_t * slots = h->layers[il].slots;
    for (int i = 0; i < m; i++) {
        uint32_t e = h->ids[i];
        if (e >= (uint32_t) h->table_experts || row[e] < 0) {
            return false;
        }
        slots[i] = row[e];
    }
    int32_t * out = h->log + h->log_n;
    out[0] = il;
    out[1] = k;
    out[2] = n;
    memcpy(out + LOG_HEAD, h->ids, m * sizeof *out);
    h->log_n += LOG_HEAD + m;
    return true;
}

// The ids are a view of the full argsort: rows lie nb[1] apart.
static bool routed(bm_hook * h, struct ggml_tensor * t, int il) {
    layer_state * l = &h->layers[il];
    int k = (int) t->ne[0], n = (int) t->ne[1];
    if (k > h->n_used || n > h->max_tokens) {
        bmoeTooWide(h->handle, il, k, n);
        return false;
    }
    const char * data = bytes_of(h, t);
    for (int i = 0; i < n; i++) {
        memcpy(h->ids + (size_t) i * k, data + i * t->nb[1], k * sizeof(int32_t));
    }
    bool ok = true;
    l->reading = false;
    if (!resident(h, il, k, n)) {
        const int32_t * log;
        int m = bm_hook_log(h, &log);
        ok = bmoeRoute(h->handle, il, h->ids, k, n, l->slots, &l->reading, (int32_t *) log, m);
    }
    l->reads += LATELY * ((l->reading ? 1 : 0) - l->reads);
    return ok;
}

static bool floats_on_host(const struct ggml_tensor * t) {
    return t->type == GGML_TYPE_F32 && ggml_is_contiguous(t) && t->data && on_host(t);
}

// watch remembers a layer's logits as the running graph is asked about.
static void watch(bm_hook * h, const struct ggml_tensor * t) {
    int il = t->op == GGML_OP_MUL_MAT ? layer_named(h, t, "ffn_moe_logits-") : -1;
    if (il >= 0) {
        h->layers[il].logits = t;
    }
}

// score writes what a layer's router makes of x and reports whether it can be
// told: weights, bias and x must be floats that the processor can read.
static bool score(const bm_hook * h, const layer_state * l, const struct ggml_tensor * x) {
    const struct ggml_tensor * w = l->router, * b = l->bias;
    int64_t d = x->ne[0];
    if (!w || w->ne[0] != d || w->ne[1] != h->table_experts || ggml_nrows(x) != 1 || !floats_on_host(w) || !floats_on_host(x)) {
        return false;
    }
    if (b && (ggml_nelements(b) != h->table_experts || !floats_on_host(b))) {
        return false;
    }
    const float * in = x->data;
    for (int e = 0; e < h->table_experts; e++) {
        const float * row = (const float *) w->data + e * d;
        float sum[8] = { 0 }; // sums of their own, so that they can be vectors
        int64_t i = 0;
        for (; i + 8 <= d; i += 8) {
            for (int j = 0; j < 8; j++) {
                sum[j] += row[i + j] * in[i + j];
            }
        }
        for (; i < d; i++) {
            sum[0] += row[i] * in[i];
        }
        h->scores[e] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])) + (b ? ((const float *) b->data)[e] : 0);
    }
    return true;
}

// guess names the likeliest expert of the next layer that is not cached, if it
// is among the k that layer's router picks of this layer's input. Attention and
// this layer's experts will change that input by little beside what is in it.
static void guess(bm_hook * h, int il, int k) {
    if (!h->scores || !h->remap || il + 1 >= h->n_layers) {
        return;
    }
    const layer_state * next = &h->layers[il + 1];
    const struct ggml_tensor * logits = h->layers[il].logits;
    h->layers[il].logits = NULL;
    if (next->n_proj == 0 || next->reads < RARELY || !logits || !score(h, next, logits->src[1])) {
        return;
    }
    const int32_t * row = h->table + (size_t) (il + 1) * h->table_experts;
    int best = -1, above = 0;
    for (int e = 0; e < h->table_experts; e++) {
        if (row[e] < 0 && (best < 0 || h->scores[e] > h->scores[best])) {
            best = e;
        }
    }
    for (int e = 0; best >= 0 && e < h->table_experts; e++) {
        above += h->scores[e] > h->scores[best];
    }
    if (best >= 0 && above < k) {
        const int32_t * log; // room is made for the guess: what this layer uses must not be
        int m = bm_hook_log(h, &log);
        if (!bmoeGuess(h->handle, il + 1, best, (int32_t *) log, m)) {
            bm_hook_abort(h, true);
        }
    }
}

// answer is the call inside a graph. One thread makes it; the others wait at
// the end of the node.
static void answer(struct ggml_tensor * t, int ith, int nth, void * ud) {
    (void) nth;
    bm_hook * h = ud;
    if (ith != 0 || bm_hook_aborted(h)) {
        return;
    }
    int il = layer_of(h, t);
    bool ok = routed(h, t, il), read = h->layers[il].reading;
    for (int proj = 0; ok && read && proj < BM_PROJ; proj++) {
        bool more; // reads that have ended are waited for too: one may have failed
        ok = bmoeWait(h->handle, il, proj, &more);
    }
    h->n_calls++;
    h->n_reads += read;
    h->layers[il].reading = false;
    if (!ok) {
        bm_hook_abort(h, true);
    }
}

// stops decides how a layer's routing is answered: true for a stop at its node,
// false for a call in its place.
static bool stops(bm_hook * h, struct ggml_tensor * t, int il) {
    layer_state * l = &h->layers[il];
    bool call = h->calls && l->reads < RARELY && t->ne[0] <= h->n_used && t->ne[1] <= h->max_tokens && on_host(t);
    if (call && t->op == GGML_OP_VIEW) {
        memcpy(l->view, t->op_params, sizeof l->view);
        memcpy(t->op_params, h->call.op_params, sizeof l->view);
        t->op = GGML_OP_CUSTOM;
    } else if (!call && t->op == GGML_OP_CUSTOM) {
        memcpy(t->op_params, l->view, sizeof l->view);
        t->op = GGML_OP_VIEW;
    }
    l->called = t->op == GGML_OP_CUSTOM;
    l->reading = false;
    shape(l, t);
    return !l->called;
}

// matmul points an expert matmul at the slot ids and, when pipelining, waits
// for its weights. Waiting in the ask is early enough whatever the order of the
// projections: the node is computed after its ask, and because it is wanted the
// asks of later nodes come after it has been computed.
static bool matmul(bm_hook * h, struct ggml_tensor * t, const bm_expert * e) {
    layer_state * l = &h->layers[e->layer];
    if (!l->routed) { // its weights are not where the matmul would look
        bmoeUnrouted(h->handle, e->layer);
        bm_hook_abort(h, true);
        return true;
    }
    l->routed = l->asked + 1 < l->n_proj;
    if (h->remap) {
        if (t->src[2] != &l->ids) {
            l->src = t->src[2];
            t->src[2] = &l->ids;
        }
    } else if (t->src[2] == &l->ids) {
        t->src[2] = l->src;
    }
    l->asked++;
    if (l->called || !h->pipeline || !l->reading) {
        return false;
    }
    bool more = false;
    if (!bm_hook_aborted(h) && !bmoeWait(h->handle, e->layer, e->proj, &more)) {
        bm_hook_abort(h, true);
        return false;
    }
    // Every stop costs the threads a meeting: none when nothing is awaited.
    return more && l->asked < l->n_proj;
}

static const struct { const char * name; int proj; } EXPERTS[] = {
    { "ffn_moe_gate-", BM_GATE }, { "ffn_moe_up-", BM_UP }, { "ffn_moe_down-", BM_DOWN }, { "ffn_moe_gate_up-", BM_GATE_UP },
};

// on_device counts an expert matmul that was handed to a device: its weights
// are the scheduler's copy, so it is known by its own name. The copy was made
// just before this ask, after the layer's routing was answered and its reads
// were waited for.
static void on_device(bm_hook * h, struct ggml_tensor * t) {
    ggml_backend_buffer_t buf = t->src[0]->buffer;
    if (!buf || ggml_backend_buffer_is_host(buf)) {
        return;
    }
    for (size_t i = 0; i < sizeof EXPERTS / sizeof *EXPERTS; i++) {
        int il = layer_named(h, t, EXPERTS[i].name);
        if (il < 0) {
            continue;
        }
        if (!h->layers[il].routed) {
            bmoeUnrouted(h->handle, il);
            bm_hook_abort(h, true);
            return;
        }
        bmoeOffloaded(h->handle, il, EXPERTS[i].proj);
        return;
    }
}

bool bm_hook_eval(struct ggml_tensor * t, bool ask, void * ud) {
    bm_hook * h = ud;
    if (!ask) {
        int il = layer_of(h, t);
        // False here would not fail the decode: the abort flag does.
        if (il >= 0 && !bm_hook_aborted(h)) {
            if (routed(h, t, il)) {
                guess(h, il, (int) t->ne[0]);
            } else {
                bm_hook_abort(h, true);
            }
        }
        return true;
    }
    if (t->op == GGML_OP_MUL_MAT_ID) {
        const bm_expert * e = find(h, t->src[0]);
        if (!e && h->device) {
            on_device(h, t);
        }
        return e && matmul(h, t, e);
    }
    if (t->op == GGML_OP_MUL_MAT && h->embd && t->src[0] == h->embd) {
        t->src[0] = &h->head;
    }
    if (h->scores) {
        watch(h, t);
    }
    int il = layer_of(h, t);
    return il >= 0 && stops(h, t, il);
}
