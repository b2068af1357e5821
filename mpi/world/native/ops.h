/* Operations of reductions that go on beside the program, which may free them meanwhile. */
#ifndef CAUSEWAY_WORLD_OPS_H
#define CAUSEWAY_WORLD_OPS_H

#include "common/binding/mpi_calls.h"

/* Keeps an operation until it has been released as often. Returns an MPI's code. */
int op_hold(MPI_Op op);
void op_release(MPI_Op op);
/* The program frees it: true where it is kept, and freed by the last release. */
int op_puts_off(MPI_Op op);

#endif
