// The evaluation hook. llama.cpp calls it for every node of a graph: first to
// ask whether we want the node's result (all asks up to a wanted node come
// before any of them is computed), then, for a wanted node, when it is there.
#include "bridge.h"

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
    int n_proj;
} layer_state;

struct bm_hook {
    uintptr_t handle;
    int n_layers, n_used, max_tokens;
    layer_state * layers;
    bm_expert * experts;
    int n_experts, cap;
    int32_t * ids; // contiguous copy of a routing node's view
    struct ggml_tensor * embd; // with a repacked copy in head, or NULL
    struct ggml_tensor head;
    bool remap, pipeline, device;
    uint8_t * raw; // a routing node's view, fetched from a device
    size_t raw_cap;
    atomic_bool abort;
};

bm_hook * bm_hook_new(uintptr_t handle, int n_layers, int n_used, int max_tokens) {
    bm_hook * h = calloc(1, sizeof *h);
    h->handle = handle;
    h->n_layers = n_layers;
    h->n_used = n_used;
    h->max_tokens = max_tokens;
    h->layers = calloc(n_layers, sizeof *h->layers);
    h->ids = malloc((size_t) n_used * max_tokens * sizeof *h->ids);
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
}

void bm_hook_abort(bm_hook * h, bool on) { atomic_store(&h->abort, on); }
bool bm_hook_aborted(void * ud) { return atomic_load(&((bm_hook *) ud)->abort); }

static const char TOPK[] = "ffn_moe_topk-";

// layer_of returns the layer of a routing node, or -1 for another node or a
// layer none of whose experts are streamed.
static int layer_of(bm_hook * h, const struct ggml_tensor * t) {
    if (strncmp(t->name, TOPK, sizeof TOPK - 1) != 0) {
        return -1;
    }
    int il = atoi(t->name + sizeof TOPK - 1);
    return il >= 0 && il < h->n_layers && h->layers[il].n_proj > 0 ? il : -1;
}

static const bm_expert * find(bm_hook * h, struct ggml_tensor * t) {
    bm_expert key = { t, 0, 0 };
    return bsearch(&key, h->experts, h->n_experts, sizeof key, by_tensor);
}

// bytes_of is where the processor can read a tensor.
static const char * bytes_of(bm_hook * h, struct ggml_tensor * t) {
    ggml_backend_buffer_t buf = t->view_src ? t->view_src->buffer : t->buffer;
    if (!h->device || !buf || ggml_backend_buffer_is_host(buf)) {
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
    l->asked = 0;
    l->routed = true;
    l->ids.type = GGML_TYPE_I32;
    l->ids.ne[0] = k;
    l->ids.ne[1] = n;
    l->ids.ne[2] = l->ids.ne[3] = 1;
    l->ids.nb[0] = sizeof(int32_t);
    l->ids.nb[1] = k * sizeof(int32_t);
    l->ids.nb[2] = l->ids.nb[3] = l->ids.nb[1] * n;
    l->ids.data = l->slots;
    l->ids.buffer = t->buffer;
    return bmoeRoute(h->handle, il, h->ids, k, n, l->slots, &l->reading);
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
    if (!h->pipeline || !l->reading) {
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
        size_t n = strlen(EXPERTS[i].name);
        if (strncmp(t->name, EXPERTS[i].name, n) != 0) {
            continue;
        }
        int il = atoi(t->name + n);
        if (il < 0 || il >= h->n_layers || h->layers[il].n_proj == 0) {
            return;
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
        if (il >= 0 && !bm_hook_aborted(h) && !routed(h, t, il)) {
            bm_hook_abort(h, true);
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
    return layer_of(h, t) >= 0;
}
