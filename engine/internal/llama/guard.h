#ifndef BMOE_GUARD_H
#define BMOE_GUARD_H

#include "llama.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decodes, and turns an exception into a negative result and its text.
int bm_guard_decode(struct llama_context * ctx, struct llama_batch batch, void (*failed)(const char *));

#ifdef __cplusplus
}
#endif

#endif
