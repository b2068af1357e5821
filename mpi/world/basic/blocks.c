#include "world/basic/basic.h"

int blocks_listed(struct blocks *blocks, const void *buffer, const int *counts, const int *starts,
                  MPI_Datatype type)
{
    MPI_Aint low;
    *blocks = (struct blocks){.buffer = buffer, .counts = counts, .starts = starts, .type = type};
    return buffer == MPI_IN_PLACE ? MPI_SUCCESS : real.Type_get_extent(type, &low, &blocks->extent);
}

int blocks_even(struct blocks *blocks, const void *buffer, int count, MPI_Datatype type)
{
    int status = blocks_listed(blocks, buffer, NULL, NULL, type);
    blocks->count = count;
    return status;
}

int blocks_typed(struct blocks *blocks, const void *buffer, const int *counts, const int *starts,
                 const MPI_Datatype *types)
{
    *blocks =
        (struct blocks){.buffer = buffer, .counts = counts, .starts = starts, .types = types, .extent = 1};
    return MPI_SUCCESS;
}

int block_count(const struct blocks *blocks, int rank)
{
    return blocks->counts ? blocks->counts[rank] : blocks->count;
}

MPI_Datatype block_type(const struct blocks *blocks, int rank)
{
    return blocks->types ? blocks->types[rank] : blocks->type;
}

void *block_at(const struct blocks *blocks, int rank)
{
    MPI_Aint start = blocks->starts ? blocks->starts[rank] : (MPI_Aint)rank * blocks->count;
    return (char *)blocks->buffer + start * blocks->extent;
}
