// See dynlink.c.
#ifndef BMOE_DYNLINK_H
#define BMOE_DYNLINK_H

// Why llama.cpp's libraries could not be bound, or NULL when all is well.
const char * bm_dynlink_problem(void);

#endif
