/* R/2 + n s/B: the root, or every rank, receives all ranks' data and combines it in the order of ranks,
 * whatever their sites. For small messages. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/intra_site/combine.h"

#include <stdlib.h>

int reduce_gathered(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int root)
{
    struct bytes own = {0};
    int is_receiver = root < 0 || on->rank == root;
    char *room = is_receiver ? malloc((int64_t)on->size * count * shape->size + 1) : NULL;
    int status = room || !is_receiver ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    TRY(status, bytes_pack(from == MPI_IN_PLACE ? into : from, count, shape, &own));
    TRY(status, root < 0 ? allgather_leaders(on, own.at, own.length, room)
                         : gather_leaders(on, own.at, own.length, room, root));
    if (is_receiver)
        TRY(status, combine_ranks(on, room, on->size, into, count, shape, op));
    bytes_free(&own);
    free(room);
    return status;
}
