// For C++ sources only: what a context is opened with and what it then holds.
#ifndef BMOE_BREAKDOWN_H
#define BMOE_BREAKDOWN_H

#include <dlfcn.h>

#include "llama-ext.h"
#include "project.h"

inline llama_context_params bm_context_params_of(const bm_project_params & p, bool op_offload) {
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = p.n_ctx; // never 0, which the fitter would take as the model's own
    cp.n_batch = p.n_batch;
    cp.n_ubatch = p.n_ubatch;
    cp.flash_attn_type = (llama_flash_attn_type) p.flash_attn;
    cp.type_k = (ggml_type) p.type_k;
    cp.type_v = (ggml_type) p.type_v;
    cp.n_outputs_max = 1; // as the session opens its context
    cp.op_offload = op_offload;
    cp.no_perf = true;
    return cp;
}

// The function has C++ linkage, so it is looked up by its mangled name.
inline llama_memory_breakdown bm_breakdown(const llama_context * ctx, bool & found) {
    using fn = llama_memory_breakdown (*)(const llama_context *);
    static const fn get = (fn) dlsym(RTLD_DEFAULT, "_Z26llama_get_memory_breakdownPK13llama_context");
    found = get != nullptr;
    return found ? get(ctx) : llama_memory_breakdown{};
}

#endif
