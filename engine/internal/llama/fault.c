// A mapped file that shrinks, or whose drive fails, makes the next touch of it a
// bus error, in the middle of a matrix product: there is nothing to go on with.
// Without a handler the Go runtime prints every goroutine and register; this
// one says what happened. Only what a signal handler may do is done here.
#include "fault.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "\nbmoe: a mapped file could not be read: it was cut short meanwhile, or its drive failed\n"
    "      restore the file and run again; nothing of this run was stored\n";

static void on_bus_error(int sig) {
    (void) sig;
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void) n;
    _exit(1);
}

void bm_fault_install(void) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_bus_error;
    a.sa_flags = SA_ONSTACK; // goroutine stacks are too small for a handler
    sigaction(SIGBUS, &a, NULL);
}
