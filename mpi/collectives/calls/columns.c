#include "collectives/calls/columns.h"

#include <stdlib.h>

static int columns_make(struct columns *all, const struct hierarchy *on)
{
    all->counts = malloc(on->size * sizeof *all->counts);
    all->displs = malloc(on->size * sizeof *all->displs);
    all->types = malloc(on->size * sizeof *all->types);
    return all->counts && all->displs && all->types ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void columns_free(struct columns *all)
{
    free(all->counts);
    free(all->displs);
    free(all->types);
}

int columns_even(struct columns *all, const struct hierarchy *on, int64_t count, const struct shape *shape)
{
    int status = columns_make(all, on);
    for (int i = 0; i < on->size && status == MPI_SUCCESS; i++) {
        all->counts[i] = count;
        all->displs[i] = (MPI_Aint)count * i * shape->extent;
        all->types[i] = shape->type;
    }
    return status;
}

int columns_of(struct columns *all, const struct hierarchy *on, const struct vector *said, MPI_Aint extent,
               MPI_Datatype type)
{
    int status = columns_make(all, on);
    for (int i = 0; i < on->size && status == MPI_SUCCESS; i++) {
        all->counts[i] = vector_count(said, i);
        all->displs[i] = vector_place(said, i) * extent;
        all->types[i] = type;
    }
    return status;
}
