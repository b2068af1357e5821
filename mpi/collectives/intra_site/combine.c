#define _GNU_SOURCE
#include "collectives/intra_site/combine.h"

#include <stdlib.h>

int combine(void *parts[], int sites, void *into, int count, const struct shape *shape, MPI_Op op)
{
    int status = MPI_SUCCESS;
    void *last = parts[sites - 1];
    if (count == 0)
        return MPI_SUCCESS;
    /* This order holds where the operation commutes too: of a number and of what is none, the greater may be
     * whichever comes first. */
    /* MPI_Reduce_local puts `in op inout` into inout, so the last site comes first. */
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

/* Makes memory for all parts but number `kept`, which is `own`. None is kept where that is -1. */
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
