/* A row of more elements than an int can count, as one element of a derived type. */
#ifndef CAUSEWAY_WORLD_ROWS_H
#define CAUSEWAY_WORLD_ROWS_H

#include "common/binding/mpi_calls.h"

/* Makes a type of `count` elements of `type`, one after the other, which the caller frees. Returns an MPI
 * error code. */
int row_make(MPI_Count count, MPI_Datatype type, MPI_Datatype *row);

#endif
