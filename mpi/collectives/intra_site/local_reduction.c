#define _GNU_SOURCE
#include "collectives/intra_site/local_reduction.h"

#include "collectives/topology/tags.h"

#include <stdlib.h>

int local_reduction_make(struct local_reduction *local, const struct hierarchy *on, int64_t most,
                         const struct shape *shape)
{
    int ranks = on->local_size;
    local->pieces = calloc(ranks, sizeof *local->pieces);
    local->counts = calloc(ranks, sizeof *local->counts);
    return local->pieces && local->counts ? parts_make_for(&local->parts, ranks, most, shape)
                                          : MPI_ERR_NO_MEM;
}

int local_reduction_begin(struct local_reduction *local, struct hierarchy *on, const struct shape *shape)
{
    const int *here = &on->members[on->first[on->site]];
    int own = on->local_rank, status = MPI_SUCCESS;
    for (int r = 0; r < on->local_size; r++)
        if (r != own && local->counts[own] > 0)
            TRY(status, requests_receive(&local->some, on, local->parts.origin[r], local->counts[own],
                                         shape->type, here[r], TAG_INTRA_SITE));
    /* Each rank starts with the rank after itself, so that not all send to the same rank at once. */
    for (int i = 1; i < on->local_size; i++) {
        int r = (own + i) % on->local_size;
        if (local->counts[r] > 0)
            TRY(status, requests_send(&local->some, on, local->pieces[r], local->counts[r], shape->type,
                                      here[r], TAG_INTRA_SITE));
    }
    return status;
}

int local_reduction_end(struct local_reduction *local, struct hierarchy *on, void *sum,
                        const struct shape *shape, MPI_Op op)
{
    int own = on->local_rank, count = local->counts[own], status = requests_wait(&local->some);
    /* `combine` overwrites only the last part, so only that part must be a copy. */
    if (own == on->local_size - 1)
        TRY(status, elements_copy(local->pieces[own], local->parts.origin[own], count, shape));
    else
        local->parts.origin[own] = local->pieces[own];
    TRY(status, combine(local->parts.origin, on->local_size, sum, count, shape, op));
    return status;
}

void local_reduction_free(struct local_reduction *local, int status)
{
    requests_free(&local->some, status);
    parts_free(&local->parts);
    free(local->pieces);
    free(local->counts);
}
