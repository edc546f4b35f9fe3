// The one place that touches llama.cpp's common library, which is C++ and not
// linked: it is loaded when its answer is wanted.
#include "capacity.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include <fit.h>
#include "breakdown.h"

using fit_fn = common_params_fit_status (*)(const char *, llama_model_params *, llama_context_params *, float *,
    llama_model_tensor_buft_override *, size_t *, uint32_t, const common_fit_extra_model *, ggml_log_level);

static void add(bm_fit_row & row, const llama_memory_breakdown_data & mem) {
    row.model += (int64_t) mem.model;
    row.context += (int64_t) mem.context;
    row.compute += (int64_t) mem.compute;
}

// list is the devices at those indices, NULL at the end.
static std::vector<ggml_backend_dev_t> list(int * devices, int n) {
    std::vector<ggml_backend_dev_t> devs;
    for (int i = 0; i < n; i++) {
        devs.push_back(ggml_backend_dev_get((size_t) devices[i]));
    }
    devs.push_back(nullptr);
    return devs;
}

void bm_fit_weigh(const char * path, bm_project_params params, int * devices, int n, bm_fit * out) {
    std::vector<ggml_backend_dev_t> devs = list(devices, n);
    std::vector<float> split(llama_max_devices(), 0.0f);
    for (int i = 0; i < n; i++) {
        split[i] = (float) out->rows[i].layers;
    }
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    std::vector<llama_model_tensor_buft_override> overrides;
    for (int i = 0; i < out->n_patterns; i++) {
        overrides.push_back({ out->patterns[i], ggml_backend_dev_buffer_type(cpu) });
    }
    overrides.push_back({ nullptr, nullptr });
    llama_model_params mp = llama_model_default_params();
    mp.no_alloc = true;
    mp.load_mode = LLAMA_LOAD_MODE_NONE;
    mp.use_extra_bufts = false; // repacked weights would be counted nowhere
    mp.devices = devs.data();
    mp.n_gpu_layers = out->n_gpu_layers;
    mp.tensor_split = split.data();
    mp.tensor_buft_overrides = overrides.data();
    out->status = 2;
    llama_model * model = llama_model_load_from_file(path, mp);
    if (!model) {
        return;
    }
    bool found = false;
    if (llama_context * ctx = llama_init_from_model(model, bm_context_params_of(params, false))) {
        for (const auto & [buft, mem] : bm_breakdown(ctx, found)) {
            bm_fit_row * row = &out->host;
            for (int i = 0; i < n; i++) {
                if (!ggml_backend_buft_is_host(buft) && ggml_backend_buft_get_device(buft) == devs[i]) {
                    row = &out->rows[i];
                }
            }
            add(*row, mem);
        }
        llama_free(ctx);
    }
    llama_model_free(model);
    out->status = found ? 0 : 2;
}

static int fit(fit_fn run, const char * path, int layers, bm_project_params params, int * devices, int n, size_t * margins, bm_fit * out) {
    std::vector<ggml_backend_dev_t> devs = list(devices, n);
    for (int i = 0; i < n; i++) {
        size_t free = 0, total = 0;
        ggml_backend_dev_memory(devs[i], &free, &total);
        out->rows[i].free = (int64_t) free;
        out->rows[i].total = (int64_t) total;
    }
    llama_model_params mp = llama_model_default_params();
    mp.devices = devs.data();
    mp.use_extra_bufts = false; // repacked weights would be counted nowhere
    llama_context_params cp = bm_context_params_of(params, false);
    std::vector<float> split(llama_max_devices(), 0.0f);
    std::vector<llama_model_tensor_buft_override> overrides(llama_max_tensor_buft_overrides());
    const int status = run(path, &mp, &cp, split.data(), overrides.data(), margins, cp.n_ctx, nullptr, GGML_LOG_LEVEL_ERROR);
    if (status != COMMON_PARAMS_FIT_STATUS_SUCCESS) {
        return status;
    }
    // Left at its default where everything fits, which means all.
    out->n_gpu_layers = mp.n_gpu_layers < 0 ? layers + 1 : mp.n_gpu_layers;
    for (int i = 0; i < n; i++) {
        out->rows[i].layers = n == 1 ? out->n_gpu_layers : (int) split[i];
    }
    for (const auto * o = mp.tensor_buft_overrides; o && o->pattern && out->n_patterns < BM_FIT_PATTERNS; o++) {
        snprintf(out->patterns[out->n_patterns++], sizeof out->patterns[0], "%s", o->pattern);
    }
    return 0;
}

void bm_fit_run(const char * lib, const char * path, int layers, bm_project_params params, int * devices, int n, size_t * margins, bm_fit * out) {
    memset(out, 0, sizeof *out);
    out->status = 3;
    void * handle = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
    const fit_fn run = handle ? (fit_fn) dlsym(handle, "_Z17common_fit_paramsPKcP18llama_model_paramsP20llama_context_paramsPfP32llama_model_tensor_buft_overridePmjPK22common_fit_extra_model14ggml_log_level") : nullptr;
    if (!run || n > BM_FIT_DEVICES) {
        return;
    }
    try {
        out->status = fit(run, path, layers, params, devices, n, margins, out);
    } catch (const std::exception &) {
        out->status = 2;
    }
}
