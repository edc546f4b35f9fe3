// llama.cpp's capacity fitter: how many layers fit on devices.
#ifndef BMOE_FIT_H
#define BMOE_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "project.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BM_FIT_DEVICES = 16, BM_FIT_PATTERNS = 512 };

typedef struct {
    int64_t free, total;             // as the device says
    int64_t model, context, compute; // of the weighed placement
    int     layers;                  // put on it, the output counted as one
} bm_fit_row;

typedef struct {
    int        status; // 0 fitted, 1 does not fit, 2 failed, 3 this build has no fitter
    int        n_gpu_layers;
    bm_fit_row host;
    bm_fit_row rows[BM_FIT_DEVICES];
    int        n_patterns;
    char       patterns[BM_FIT_PATTERNS][128]; // tensors of placed layers left on the host
} bm_fit;

// Fits the model in path, whose graph runs layers layers, to devices, leaving
// margin bytes of each free. lib is the library that has the fitter. Reads
// metadata only. Not to be run twice at once. Fills in no sizes; where all fits
// on several devices, no row's layers either.
void bm_fit_run(const char * lib, const char * path, int layers, bm_project_params params, int * devices, int n, size_t * margins, bm_fit * out);

// Fills in what the placement in out holds where: its n_gpu_layers, its rows'
// layers, its patterns. Reads metadata only and allocates nothing. Sets status.
void bm_fit_weigh(const char * path, bm_project_params params, int * devices, int n, bm_fit * out);

#ifdef __cplusplus
}
#endif

#endif
