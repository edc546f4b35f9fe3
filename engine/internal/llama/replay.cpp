// What a token's graph costs beside the weights it reads: norms, rotations,
// attention, the choice of experts, and a barrier after each. The graph is the
// model's own, as llama.cpp builds it; only shapes are taken from it, so no
// weight needs to be loaded, and values are noise that no time depends on.
#include "replay.h"

#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"
#include "pool.h"

namespace {

// Tensors from this size on share one block: caches of many layers, of which a
// token's graph reads a little.
constexpr size_t shared_from = 1 << 20;
constexpr size_t shared_most = 256u << 20;
// Positions of the context that attention looks at.
constexpr int64_t seen = 128;

bool is_weight(const ggml_tensor * t) { return t && t->op == GGML_OP_NONE && !t->view_src; }

// Its time is priced by the weight's bytes.
bool priced_elsewhere(const ggml_tensor * t) {
    return (t->op == GGML_OP_MUL_MAT || t->op == GGML_OP_MUL_MAT_ID || t->op == GGML_OP_GET_ROWS) && is_weight(t->src[0]);
}

struct copier {
    ggml_context * ctx;
    std::unordered_map<const ggml_tensor *, ggml_tensor *> made;
    std::vector<ggml_tensor *> large, masks;
    size_t largest = 0;
    bool   failed  = false;

    // The tensor's copy, which holds memory but computes nothing yet.
    ggml_tensor * shape(const ggml_tensor * t) {
        auto found = made.find(t);
        if (found != made.end()) {
            return found->second;
        }
        ggml_tensor * c;
        if (t->view_src) {
            ggml_tensor * base = shape(t->view_src);
            failed = failed || base->type != t->type;
            c = ggml_view_4d(ctx, base, t->ne[0], t->ne[1], t->ne[2], t->ne[3], t->nb[1], t->nb[2], t->nb[3], t->view_offs);
        } else {
            c = ggml_new_tensor_4d(ctx, t->type, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
            if (t->op == GGML_OP_NONE && ggml_nbytes(c) >= shared_from) {
                large.push_back(c);
                largest = ggml_nbytes(c) > largest ? ggml_nbytes(c) : largest;
            }
        }
        memcpy(c->nb, t->nb, sizeof c->nb);
        made[t] = c;
        return c;
    }

    // The node's copy, which computes what the node does.
    ggml_tensor * node(const ggml_tensor * t) {
        ggml_tensor * c = shape(t);
        c->op    = t->op;
        c->flags = t->flags;
        memcpy(c->op_params, t->op_params, sizeof c->op_params);
        for (int i = 0; i < GGML_MAX_SRC; i++) {
            c->src[i] = t->src[i] ? shape(t->src[i]) : nullptr;
        }
        const int mask = t->op == GGML_OP_FLASH_ATTN_EXT ? 3 : t->op == GGML_OP_SOFT_MAX ? 1 : -1;
        if (mask >= 0 && c->src[mask]) {
            masks.push_back(c->src[mask]);
        }
        return c;
    }
};

void fill_floats(ggml_tensor * t, float value) {
    std::vector<float> v(ggml_nelements(t), value);
    ggml_backend_tensor_set(t, v.data(), 0, v.size() * sizeof(float));
}

// Hides all but the first positions, as a context that is not full does.
void hide(ggml_tensor * mask) {
    while (mask->view_src) {
        mask = mask->view_src;
    }
    if (mask->type != GGML_TYPE_F16 && mask->type != GGML_TYPE_F32) {
        return;
    }
    const size_t size = ggml_type_size(mask->type);
    std::vector<uint8_t> v(ggml_nbytes(mask));
    for (int64_t i = 0; i < ggml_nelements(mask); i++) {
        const bool     out = i % mask->ne[0] >= seen;
        const uint16_t half = out ? 0xfc00 : 0;
        const uint32_t full = out ? 0xff800000u : 0;
        memcpy(&v[i * size], size == 2 ? (const void *) &half : (const void *) &full, size);
    }
    ggml_backend_tensor_set(mask, v.data(), 0, v.size());
}

} // namespace

bool bm_only_looks(const ggml_tensor * t) {
    return t->op == GGML_OP_NONE || t->op == GGML_OP_RESHAPE || t->op == GGML_OP_VIEW || t->op == GGML_OP_PERMUTE || t->op == GGML_OP_TRANSPOSE;
}

struct bm_replay {
    ggml_backend_t          backend = nullptr;
    ggml_threadpool *       pool    = nullptr;
    ggml_context *          ctx     = nullptr;
    ggml_cgraph *           graph   = nullptr;
    ggml_backend_buffer_t   shared  = nullptr;
    ggml_backend_buffer_t   buffer  = nullptr;
    int                     nodes   = 0;
};

static bool allocate(bm_replay * r, copier & c) {
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(r->backend);
    if (c.failed || c.largest > shared_most) {
        return false;
    }
    if (!c.large.empty()) {
        r->shared = ggml_backend_buft_alloc_buffer(buft, c.largest + 4096);
        if (!r->shared) {
            return false;
        }
        ggml_backend_buffer_clear(r->shared, 0);
        for (ggml_tensor * t : c.large) {
            ggml_backend_tensor_alloc(r->shared, t, ggml_backend_buffer_get_base(r->shared));
        }
    }
    r->buffer = ggml_backend_alloc_ctx_tensors_from_buft(r->ctx, buft);
    if (!r->buffer) {
        return false;
    }
    ggml_backend_buffer_clear(r->buffer, 0);
    for (auto & [from, t] : c.made) {
        if (t->type == GGML_TYPE_F32 && !t->view_src && t->op == GGML_OP_NONE && t->buffer == r->buffer) {
            fill_floats(t, 0.5f);
        }
    }
    for (ggml_tensor * m : c.masks) {
        hide(m);
    }
    return true;
}

static bool open_cpu(bm_replay * r, int threads) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    r->backend = cpu ? ggml_backend_dev_init(cpu, nullptr) : nullptr;
    if (!r->backend) {
        return false;
    }
    r->pool = bm_pool_use(r->backend, threads);
    return true;
}

bm_replay * bm_replay_new(ggml_cgraph * graph, int threads) {
    const int n    = ggml_graph_n_nodes(graph);
    const size_t most = 4 * (size_t) n + 1024; // nodes, their leaves and views of them
    bm_replay * r = new bm_replay;
    ggml_init_params ip = { most * ggml_tensor_overhead() + ggml_graph_overhead_custom(most, false), nullptr, true };
    r->ctx = ggml_init(ip);
    copier c{ r->ctx };
    r->graph = ggml_new_graph_custom(r->ctx, most, false);
    for (int i = 0; i < n && !c.failed; i++) {
        const ggml_tensor * t = ggml_graph_node(graph, i);
        if (bm_only_looks(t) || priced_elsewhere(t)) {
            continue; // made where something needs it
        }
        if (c.made.size() * 2 > most) {
            c.failed = true;
            break;
        }
        ggml_build_forward_expand(r->graph, c.node(t));
        r->nodes++;
    }
    if (!open_cpu(r, threads) || !allocate(r, c) || r->nodes == 0) {
        bm_replay_free(r);
        return nullptr;
    }
    return r;
}

void bm_replay_free(bm_replay * r) {
    if (!r) {
        return;
    }
    if (r->buffer) {
        ggml_backend_buffer_free(r->buffer);
    }
    if (r->shared) {
        ggml_backend_buffer_free(r->shared);
    }
    if (r->backend) {
        ggml_backend_free(r->backend);
    }
    bm_pool_free(r->pool);
    ggml_free(r->ctx);
    delete r;
}

int bm_replay_nodes(const bm_replay * r) { return r->nodes; }

double bm_replay_run(bm_replay * r) {
    const int64_t start = ggml_time_us();
    if (ggml_backend_graph_compute(r->backend, r->graph) != GGML_STATUS_SUCCESS) {
        return -1;
    }
    return (double) (ggml_time_us() - start) * 1e-6;
}
