/* R/2 + n s/B: every rank receives all ranks' data, and combines that of the ranks before it in the order of
 * ranks. For small messages and ranks in any order. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/combine.h"

#include <stdlib.h>

int scan_gathered(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int inclusive)
{
    struct bytes own = {0};
    char *room = malloc((int64_t)on->size * count * shape->size + 1);
    int status = room ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    TRY(status, bytes_pack(from == MPI_IN_PLACE ? into : from, count, shape, &own));
    TRY(status, allgather_leaders(on, own.at, own.length, room));
    /* In an exclusive scan no rank comes before rank 0, and its buffer is left unchanged. */
    int ranks = inclusive ? on->rank + 1 : on->rank;
    if (ranks > 0)
        TRY(status, combine_ranks(on, room, ranks, into, count, shape, op));
    bytes_free(&own);
    free(room);
    return status;
}
