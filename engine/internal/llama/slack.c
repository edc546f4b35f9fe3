// Go's monitor thread sleeps for 20 us at a time, fifty times over, whenever a
// call into C has lasted 10 ms: with every core computing, each of its wake-ups
// takes a core from the graph while all threads wait (measured: 15 % of a core,
// 3 ms of a 10 ms token). Timer slack lets the kernel put those wake-ups off to
// the next tick. Threads inherit it, so it is set before Go's runtime starts.
#ifdef __linux__
#include <sys/prctl.h>

static const unsigned long SLACK_NS = 2000000;

__attribute__((constructor)) static void calm_monitor(void) { prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0); }
#endif
