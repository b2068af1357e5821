/* A block for each rank, as calls of any kind describe them. */
#ifndef CAUSEWAY_COLUMNS_H
#define CAUSEWAY_COLUMNS_H

#include "async/plan.h"

/* Elements for each rank and where they begin, in bytes; `types` where asked for. */
struct columns {
    MPI_Count *counts;
    MPI_Aint *places;
    MPI_Datatype *types;
};

/* Equal blocks, one behind the other. */
int columns_even(struct columns *all, const struct hierarchy *on, int64_t count, const struct shape *shape);

/* What a call with v in its name says; `type` for all. */
int columns_of(struct columns *all, const struct hierarchy *on, const struct vector *said, MPI_Aint extent,
               MPI_Datatype type);

void columns_free(struct columns *all);

#endif
