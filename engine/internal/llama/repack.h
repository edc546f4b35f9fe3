// Weights in the CPU backend's own layout ("repacked"), as stock llama.cpp
// stores them by default: the same values in an order its matmuls read faster.
#ifndef BMOE_REPACK_H
#define BMOE_REPACK_H

#include "ggml.h"
#include "ggml-backend.h"

typedef struct bm_repack bm_repack;

// How matrices of this type and shape are repacked; NULL when they are not.
bm_repack * bm_repack_new(enum ggml_type type, int64_t ne0, int64_t ne1);
void bm_repack_free(bm_repack * r);
// Repacks one matrix from src to dst, both of ggml_nbytes. Any thread.
void bm_repack_run(const bm_repack * r, void * dst, const void * src);
// Tells the backend that t's data lies in that order.
void bm_repack_mark(const bm_repack * r, struct ggml_tensor * t);

#endif
