#define _GNU_SOURCE
#include "intra_site/turn.h"

#include "algorithms/algorithms.h"

#include <stdlib.h>

int turn_make(struct turn *turn, const struct hierarchy *on, int64_t most, const struct shape *shape)
{
    int ranks = on->local_size;
    turn->pieces = calloc(ranks, sizeof *turn->pieces);
    turn->counts = calloc(ranks, sizeof *turn->counts);
    return turn->pieces && turn->counts ? parts_make_for(&turn->parts, ranks, most, shape) : MPI_ERR_NO_MEM;
}

int turn_begin(struct turn *turn, struct hierarchy *on, const struct shape *shape)
{
    const int *here = &on->members[on->first[on->site]];
    int own = on->local_rank, status = MPI_SUCCESS;
    for (int r = 0; r < on->local_size; r++)
        if (r != own && turn->counts[own] > 0)
            TRY(status, requests_receive(&turn->some, on, turn->parts.origin[r], turn->counts[own], shape->type, here[r], TAG_INTRA_SITE));
    /* The next rank first, so that not all send to the same one. */
    for (int i = 1; i < on->local_size; i++) {
        int r = (own + i) % on->local_size;
        if (turn->counts[r] > 0)
            TRY(status, requests_send(&turn->some, on, turn->pieces[r], turn->counts[r], shape->type, here[r], TAG_INTRA_SITE));
    }
    return status;
}

int turn_end(struct turn *turn, struct hierarchy *on, void *sum, const struct shape *shape, MPI_Op op)
{
    int own = on->local_rank, count = turn->counts[own], status = requests_wait(&turn->some);
    /* The last part alone is written to. */
    if (own == on->local_size - 1)
        TRY(status, elements_copy(on, turn->pieces[own], turn->parts.origin[own], count, shape));
    else
        turn->parts.origin[own] = turn->pieces[own];
    TRY(status, combine(on, turn->parts.origin, on->local_size, sum, count, shape, op));
    return status;
}

void turn_free(struct turn *turn, int status)
{
    requests_free(&turn->some, status);
    parts_free(&turn->parts);
    free(turn->pieces);
    free(turn->counts);
}
