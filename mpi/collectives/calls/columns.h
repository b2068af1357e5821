/* A block for each rank, as calls of any kind describe them. */
#ifndef CAUSEWAY_COLUMNS_H
#define CAUSEWAY_COLUMNS_H

#include "collectives/async/plan.h"

/* How many elements each rank's block has, and at which byte it begins; `types` is made only where it is
 * asked for. */
struct columns {
    MPI_Count *counts;
    MPI_Aint *displs;
    MPI_Datatype *types;
};

/* Makes equal blocks, one behind the other. */
int columns_even(struct columns *all, const struct hierarchy *on, int64_t count, const struct shape *shape);

/* Makes the blocks that a call with v in its name describes, all of the type `type`. */
int columns_of(struct columns *all, const struct hierarchy *on, const struct vector *said, MPI_Aint extent,
               MPI_Datatype type);

void columns_free(struct columns *all);

#endif
