// llama_decode lets C++ exceptions through when a device has no room for a
// graph; one that left C++ here would end the process.
#include "guard.h"

#include <exception>

#include "llama.h"

int bm_guard_decode(struct llama_context * ctx, struct llama_batch batch, void (*failed)(const char *)) {
    try {
        const int rc = llama_decode(ctx, batch);
        llama_synchronize(ctx);
        return rc;
    } catch (const std::exception & e) {
        failed(e.what());
    } catch (...) {
        failed("an exception without a name");
    }
    return -100;
}
