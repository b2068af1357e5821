#define _GNU_SOURCE
#include "collectives/intra_site/combine.h"

#include <stdlib.h>

int combine(void *parts[], int sites, void *into, int count, const struct shape *shape, MPI_Op op)
{
    int status = MPI_SUCCESS;
    void *last = parts[sites - 1];
    if (count == 0)
        return MPI_SUCCESS;
    /* The order is kept even if the operation commutes: the maximum of a number and a NaN may be whichever
     * comes first. */
    /* MPI_Reduce_local stores `in op inout` in inout, so the loop starts from the last site. */
    for (int s = sites - 2; s >= 0; s--)
        TRY(status, real.Reduce_local(parts[s], last, count, shape->type, op));
    TRY(status, elements_copy(last, into, count, shape));
    return status;
}

int combine_ranks(struct hierarchy *on, const char *room, int ranks, void *into, int count,
                  const struct shape *shape, MPI_Op op)
{
    int64_t length = (int64_t)count * shape->size;
    void *origin[2] = {NULL, NULL},
         *memory[2] = {elements(count, shape, &origin[0]), elements(count, shape, &origin[1])};
    int status = memory[0] && memory[1] ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (int rank = 0; rank < ranks && status == MPI_SUCCESS; rank++) {
        void *this = origin[rank % 2];
        const char *part = room + (on->first[on->site_of[rank]] + on->local_rank_of[rank]) * length;
        status = unpack(part, length, this, count, shape);
        if (rank > 0 && count > 0)
            TRY(status, real.Reduce_local(origin[(rank - 1) % 2], this, count, shape->type, op));
    }
    TRY(status, elements_copy(origin[(ranks - 1) % 2], into, count, shape));
    free(memory[0]);
    free(memory[1]);
    return status;
}

/* Allocates all parts except part `kept`, which is `own`. If `kept` is -1, allocates all. */
static int make(struct parts *parts, int number, int64_t count, const struct shape *shape, int kept,
                void *own)
{
    parts->number = number;
    parts->origin = calloc(2 * number, sizeof(void *));
    if (!parts->origin)
        return MPI_ERR_NO_MEM;
    parts->memory = parts->origin + number;
    for (int i = 0; i < number; i++) {
        if (i == kept) {
            parts->origin[i] = own;
            continue;
        }
        parts->memory[i] = elements(count, shape, &parts->origin[i]);
        if (!parts->memory[i])
            return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
}

int parts_make(struct parts *parts, const struct hierarchy *on, int64_t count, const struct shape *shape,
               void *own)
{
    return make(parts, on->sites, count, shape, own == MADE ? -1 : on->site, own);
}

int parts_make_for(struct parts *parts, int ranks, int64_t count, const struct shape *shape)
{
    return make(parts, ranks, count, shape, -1, NULL);
}

void parts_free(struct parts *parts)
{
    for (int s = 0; parts->origin && s < parts->number; s++)
        free(parts->memory[s]);
    free(parts->origin);
    *parts = (struct parts){0};
}
