#define _GNU_SOURCE
#include "hostbuf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ggml-backend-impl.h"

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

static void hb_free(ggml_backend_buffer_t b) { munmap(b->context, b->size); }
static void * hb_base(ggml_backend_buffer_t b) { return b->context; }

// Nothing is written through the buffer: the caller binds data itself.
static void hb_memset(ggml_backend_buffer_t b, struct ggml_tensor * t, uint8_t v, size_t off, size_t n) {
    (void) b; (void) t; (void) v; (void) off; (void) n;
}
static void hb_set(ggml_backend_buffer_t b, struct ggml_tensor * t, const void * d, size_t off, size_t n) {
    (void) b; (void) t; (void) d; (void) off; (void) n;
}
static void hb_get(ggml_backend_buffer_t b, const struct ggml_tensor * t, void * d, size_t off, size_t n) {
    (void) b;
    memcpy(d, (const char *) t->data + off, n);
}
static void hb_clear(ggml_backend_buffer_t b, uint8_t v) { (void) b; (void) v; }

static const struct ggml_backend_buffer_i hb_iface = {
    .free_buffer = hb_free,
    .get_base = hb_base,
    .memset_tensor = hb_memset,
    .set_tensor = hb_set,
    .get_tensor = hb_get,
    .clear = hb_clear,
};

static ggml_backend_buffer_t hb_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    void * p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }
    return ggml_backend_buffer_init(buft, hb_iface, p, size ? size : 1);
}

static size_t hb_alignment(ggml_backend_buffer_type_t buft) { (void) buft; return 64; }
static bool hb_is_host(ggml_backend_buffer_type_t buft) { (void) buft; return true; }
static const char * experts_name(ggml_backend_buffer_type_t buft) { (void) buft; return "bmoe-experts"; }
static const char * dense_name(ggml_backend_buffer_type_t buft) { (void) buft; return "bmoe-dense"; }

static struct ggml_backend_buffer_type experts = {
    .iface = { .get_name = experts_name, .alloc_buffer = hb_alloc, .get_alignment = hb_alignment, .is_host = hb_is_host },
};
static struct ggml_backend_buffer_type dense = {
    .iface = { .get_name = dense_name, .alloc_buffer = hb_alloc, .get_alignment = hb_alignment, .is_host = hb_is_host },
};

// A buffer type must belong to a device, or llama.cpp's bookkeeping by device
// meets a null one.
static ggml_backend_buffer_type_t on_cpu(struct ggml_backend_buffer_type * t) {
    if (!t->device) {
        t->device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    }
    return t;
}

ggml_backend_buffer_type_t bm_hostbuf_experts(void) { return on_cpu(&experts); }
ggml_backend_buffer_type_t bm_hostbuf_dense(void) { return on_cpu(&dense); }
