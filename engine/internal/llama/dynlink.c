// Binds llama.cpp when the program starts instead of linking it, so that a
// program whose libraries are missing can still say so in plain words: a linked
// one would be stopped by the dynamic linker before main.
//
// For each function named in symbols.inc there is a pointer and a stub of the
// function's own name that jumps through it; a jump touches neither arguments
// nor stack, so one stub fits every signature. The stubs are hidden: the
// libraries must keep finding each other's functions, not ours.
#include "dynlink.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BM_STRING(x) #x
#define BM_EXPAND(x) BM_STRING(x)
#define BM_ASM_NAME(x) BM_EXPAND(__USER_LABEL_PREFIX__) #x

#ifdef __APPLE__
#define BM_HIDE(name) ".private_extern " name "\n"
#define BM_PAGE(name) name "@PAGE"
#define BM_OFF(name) name "@PAGEOFF"
#define BM_LIBRARY "@rpath/libllama.dylib"
#else
#define BM_HIDE(name) ".hidden " name "\n"
#define BM_PAGE(name) name
#define BM_OFF(name) ":lo12:" name
#define BM_LIBRARY "libllama.v0.4.0.so"
#endif

#if defined(__x86_64__)
#define BM_JUMP(slot) "jmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
#define BM_JUMP(slot) "adrp x16, " BM_PAGE(slot) "\nldr x16, [x16, " BM_OFF(slot) "]\nbr x16\n"
#else
#error "no stub for this processor: write its indirect jump here"
#endif

// The pointers. Hidden, so that the stubs reach them without a table.
#define BM_SYMBOL(name) __attribute__((visibility("hidden"))) void * bm_slot_##name;
#include "symbols.inc"
#undef BM_SYMBOL

#define BM_STUB(name, slot) \
    __asm__(".text\n.globl " name "\n" BM_HIDE(name) ".p2align 4\n" name ":\n" BM_JUMP(slot));
#define BM_SYMBOL(name) BM_STUB(BM_ASM_NAME(name), BM_ASM_NAME(bm_slot_##name))
#include "symbols.inc"
#undef BM_SYMBOL

static char problem[512];

// Called through a pointer that was never filled: a caller that did not ask
// bm_dynlink_problem first.
static void unbound(void) {
    fprintf(stderr, "bmoe: llama.cpp was called and is not loaded: %s\n", problem);
    abort();
}

static void bind(void * lib, const char * name, void ** slot) {
    *slot = lib ? dlsym(lib, name) : NULL;
    if (*slot) {
        return;
    }
    if (!problem[0]) {
        snprintf(problem, sizeof problem, "%s has no function %s: it is another release of llama.cpp", BM_LIBRARY, name);
    }
    *slot = (void *) unbound;
}

// The folder is the program's run path, as it would be for a linked library.
__attribute__((constructor)) static void bind_all(void) {
    void * lib = dlopen(BM_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    if (!lib) {
        const char * why = dlerror();
        snprintf(problem, sizeof problem, "%s", why ? why : BM_LIBRARY " cannot be loaded");
    }
#define BM_SYMBOL(name) bind(lib, #name, &bm_slot_##name);
#include "symbols.inc"
#undef BM_SYMBOL
}

const char * bm_dynlink_problem(void) { return problem[0] ? problem : NULL; }
