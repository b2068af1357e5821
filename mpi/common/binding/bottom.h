/* Data whose datatype contains absolute addresses begins at MPI_BOTTOM, which MPI_Pack and MPI_Unpack of
 * MPICH take for a missing buffer. So this makes a datatype that describes the same data relative to another
 * address. */
#ifndef CAUSEWAY_BOTTOM_H
#define CAUSEWAY_BOTTOM_H

#include "common/binding/mpi_calls.h"

/* What to pass to the MPI in place of a buffer and its datatype. */
struct placed {
    const void *buffer;
    MPI_Datatype type;
    int is_ours;
};

/* Returns an MPI error code. Call bottom_end whatever it returns. */
int bottom_place(const void *buffer, MPI_Datatype type, struct placed *placed);
void bottom_end(struct placed *placed);

#endif
