/* How a datatype was made. */
#ifndef CAUSEWAY_COMBINER_H
#define CAUSEWAY_COMBINER_H

#include "binding/mpi_calls.h"

/* The constructor, MPI_COMBINER_NAMED and so on; -1 for MPI_DATATYPE_NULL or where the MPI does not say. */
int combiner_of(MPI_Datatype type);

#endif
