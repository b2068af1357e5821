/* How a datatype was made. */
#ifndef CAUSEWAY_COMBINER_H
#define CAUSEWAY_COMBINER_H

#include "common/binding/mpi_calls.h"

/* The constructor, MPI_COMBINER_NAMED and so on; -1 for MPI_DATATYPE_NULL or where the MPI does not say. */
int combiner_of(MPI_Datatype type);

/* What it was made of: lengths of the lists that MPI_Type_get_contents gives. */
struct envelope {
    int counts, addresses, types;
    /* Made with large counts, which that call does not give. */
    int is_large;
};
/* Returns the constructor, and describes what it was given. */
int combiner_envelope(MPI_Datatype type, struct envelope *made);

#endif
