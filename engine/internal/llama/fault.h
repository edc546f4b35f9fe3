// See fault.c.
#ifndef BMOE_FAULT_H
#define BMOE_FAULT_H

// Ends the program in plain words when a mapped file cannot be read.
void bm_fault_install(void);

#endif
