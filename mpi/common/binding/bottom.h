/* Data whose datatype has addresses of its own begins at MPI_BOTTOM. MPI_Pack and MPI_Unpack of MPICH take
 * that for no buffer at all. The same data, counted from somewhere else, is said by a datatype of ours. */
#ifndef CAUSEWAY_BOTTOM_H
#define CAUSEWAY_BOTTOM_H

#include "common/binding/mpi_calls.h"

/* What to call the MPI with in place of a buffer and its datatype. */
struct placed {
    const void *buffer;
    MPI_Datatype type;
    int is_ours;
};

/* Returns an MPI's code. bottom_end is due whatever it returns. */
int bottom_place(const void *buffer, MPI_Datatype type, struct placed *placed);
void bottom_end(struct placed *placed);

#endif
