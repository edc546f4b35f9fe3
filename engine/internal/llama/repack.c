#include "repack.h"

#include <stdlib.h>
#include <string.h>

#include "ggml-backend-impl.h"

struct bm_repack {
    struct ggml_context * ctx;
    struct ggml_tensor * scratch;
    ggml_backend_buffer_t buffer; // small: it stands for the layout, it holds nothing
};

static ggml_backend_buffer_type_t repack_type(void) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_reg_t reg = cpu ? ggml_backend_dev_backend_reg(cpu) : NULL;
    if (!reg) {
        return NULL;
    }
    ggml_backend_buffer_type_t * (*extras)(ggml_backend_dev_t) = ggml_backend_reg_get_proc_address(reg, "ggml_backend_dev_get_extra_bufts");
    ggml_backend_buffer_type_t * list = extras ? extras(cpu) : NULL;
    for (; list && *list; list++) {
        if (strcmp(ggml_backend_buft_name(*list), "CPU_REPACK") == 0) {
            return *list;
        }
    }
    return NULL;
}

bm_repack * bm_repack_new(enum ggml_type type, int64_t ne0, int64_t ne1) {
    ggml_backend_buffer_type_t buft = repack_type();
    if (!buft) {
        return NULL;
    }
    bm_repack * r = calloc(1, sizeof *r);
    struct ggml_init_params p = { .mem_size = 2 * ggml_tensor_overhead(), .no_alloc = true };
    r->ctx = ggml_init(p);
    r->scratch = ggml_new_tensor_2d(r->ctx, type, ne0, ne1);
    r->buffer = ggml_backend_buft_alloc_buffer(buft, 64);
    if (r->buffer) {
        ggml_backend_buffer_set_usage(r->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        r->scratch->buffer = r->buffer;
        r->scratch->data = ggml_backend_buffer_get_base(r->buffer);
        ggml_backend_buffer_init_tensor(r->buffer, r->scratch);
    }
    if (!r->scratch->extra) { // the backend has no other layout for this one
        bm_repack_free(r);
        return NULL;
    }
    return r;
}

void bm_repack_free(bm_repack * r) {
    if (!r) {
        return;
    }
    if (r->buffer) {
        ggml_backend_buffer_free(r->buffer);
    }
    ggml_free(r->ctx);
    free(r);
}

void bm_repack_run(const bm_repack * r, void * dst, const void * src) {
    struct ggml_tensor t = *r->scratch;
    t.data = dst;
    ggml_backend_tensor_set(&t, src, 0, ggml_nbytes(&t));
}

void bm_repack_mark(const bm_repack * r, struct ggml_tensor * t) {
    t->buffer = r->buffer;
    t->extra = r->scratch->extra;
}
