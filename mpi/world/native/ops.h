/* Operations of reductions that run in the background. The program may free them meanwhile. */
#ifndef CAUSEWAY_WORLD_OPS_H
#define CAUSEWAY_WORLD_OPS_H

#include "common/binding/mpi_calls.h"

/* Keep an operation until it has been released as often as it was held. op_hold returns an MPI error code. */
int op_hold(MPI_Op op);
void op_release(MPI_Op op);
/* Called when the program frees an operation. Returns true if it is held; then the last release frees it. */
int op_puts_off(MPI_Op op);

#endif
