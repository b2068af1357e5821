/* One block for each rank, whichever kind of call describes them. */
#ifndef CAUSEWAY_COLUMNS_H
#define CAUSEWAY_COLUMNS_H

#include "collectives/async/plan.h"

/* The number of elements in each rank's block, the byte at which it begins, and its type. */
struct columns {
    MPI_Count *counts;
    MPI_Aint *displs;
    MPI_Datatype *types;
};

/* Makes equal blocks, one after the other. */
int columns_even(struct columns *all, const struct hierarchy *on, int64_t count, const struct shape *shape);

/* Makes the blocks that a call with v in its name describes, all of the type `type`. */
int columns_of(struct columns *all, const struct hierarchy *on, const struct vector *said, MPI_Aint extent,
               MPI_Datatype type);

void columns_free(struct columns *all);

#endif
