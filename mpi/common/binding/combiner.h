/* How a datatype was made. */
#ifndef CAUSEWAY_COMBINER_H
#define CAUSEWAY_COMBINER_H

#include "common/binding/mpi_calls.h"

/* The constructor, MPI_COMBINER_NAMED and so on; -1 for MPI_DATATYPE_NULL, or if the MPI returns an error. */
int combiner_of(MPI_Datatype type);

/* What a type was made from: the lengths of the lists that MPI_Type_get_contents returns. */
struct envelope {
    int counts, addresses, types;
    /* True if it was made with large counts, which that call does not return. */
    int is_large;
};
/* Returns the constructor, and describes its arguments. */
int combiner_envelope(MPI_Datatype type, struct envelope *made);

#endif
