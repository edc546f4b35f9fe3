// C++ because llama.cpp publishes a context's memory as a std::map.
#include "project.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "breakdown.h"
#include "replay.h"

struct bm_project {
    llama_model * model;
    bool          offload;
};

bm_project * bm_project_new(char ** paths, int n_paths, int n_gpu_layers, int device) {
    ggml_backend_dev_t devices[2] = { device < 0 ? nullptr : ggml_backend_dev_get((size_t) device), nullptr };
    llama_model_params mp = llama_model_default_params();
    mp.no_alloc = true;
    mp.load_mode = LLAMA_LOAD_MODE_NONE;
    mp.use_extra_bufts = false; // repacked weights would be counted nowhere
    mp.n_gpu_layers = n_gpu_layers;
    if (devices[0]) {
        mp.devices = devices;
    }
    llama_model * model = n_paths == 1
        ? llama_model_load_from_file(paths[0], mp)
        : llama_model_load_from_splits((const char **) paths, n_paths, mp);
    if (!model) {
        return nullptr;
    }
    return new bm_project{ model, devices[0] != nullptr };
}

void bm_project_free(bm_project * p) {
    llama_model_free(p->model);
    delete p;
}

static llama_context * open_context(bm_project * p, bm_project_params params) {
    return llama_init_from_model(p->model, bm_context_params_of(params, p->offload));
}

// llama.cpp's own graph of one token; NULL where this build does not show it.
static ggml_cgraph * token_graph(llama_context * ctx) {
    using fn = ggml_cgraph * (*)(llama_context *, uint32_t, uint32_t, uint32_t);
    static const fn reserve = (fn) dlsym(RTLD_DEFAULT, "_Z19llama_graph_reserveP13llama_contextjjj");
    return reserve && ctx ? reserve(ctx, 1, 1, 1) : nullptr;
}

int bm_project_nodes(bm_project * p, bm_project_params params) {
    llama_context * ctx = open_context(p, params);
    ggml_cgraph * graph = token_graph(ctx);
    int n = graph ? 0 : -1;
    for (int i = 0; graph && i < ggml_graph_n_nodes(graph); i++) {
        n += bm_only_looks(ggml_graph_node(graph, i)) ? 0 : 1;
    }
    llama_free(ctx);
    return n;
}

bm_replay * bm_project_replay(bm_project * p, bm_project_params params, int threads) {
    llama_context * ctx = open_context(p, params);
    ggml_cgraph * graph = token_graph(ctx);
    bm_replay * r = graph ? bm_replay_new(graph, threads) : nullptr;
    llama_free(ctx);
    return r;
}

int bm_context_memory(const llama_context * ctx, bm_project_row * rows, int most) {
    bool found = false;
    std::map<std::string, bm_project_row> sum;
    for (const auto & [buft, mem] : bm_breakdown(ctx, found)) {
        ggml_backend_dev_t dev = ggml_backend_buft_is_host(buft) ? nullptr : ggml_backend_buft_get_device(buft);
        const std::string name = dev ? ggml_backend_dev_name(dev) : "";
        bm_project_row & row = sum[name];
        snprintf(row.name, sizeof row.name, "%s", name.c_str());
        row.model += (int64_t) mem.model;
        row.context += (int64_t) mem.context;
        row.compute += (int64_t) mem.compute;
    }
    if (!found) {
        return -2;
    }
    int n = 0;
    for (const auto & entry : sum) {
        if (n < most) {
            rows[n++] = entry.second;
        }
    }
    return n;
}

int bm_project_at(bm_project * p, bm_project_params params, bm_project_row * rows, int most) {
    llama_context * ctx = open_context(p, params);
    if (!ctx) {
        return -1;
    }
    int n = bm_context_memory(ctx, rows, most);
    llama_free(ctx);
    return n;
}
