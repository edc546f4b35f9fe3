// Host buffer types whose memory is reserved, not committed: tensors placed in
// them get addresses, and the caller decides what lies behind each.
#ifndef BMOE_HOSTBUF_H
#define BMOE_HOSTBUF_H

#include "ggml-backend.h"

ggml_backend_buffer_type_t bm_hostbuf_experts(void);
ggml_backend_buffer_type_t bm_hostbuf_dense(void);

#endif
