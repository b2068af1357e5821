/* R/2 + n s/B: everybody gets everything, and adds up what lies before itself, in the order of ranks. For small messages and ranks in
 * any order. */
#include "../combine.h"
#include "algorithms.h"

#include <stdlib.h>

int scan_gathered(struct levels *on, const void *from, void *into, int count, const struct shape *shape, MPI_Op op,
                  int inclusive)
{
    struct bytes own = {0};
    void *origin = NULL, *memory = elements(count, shape, &origin);
    char *room = malloc((int64_t)on->size * count * shape->size + 1);
    int status = room && memory ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    TRY(status, bytes_pack(from == MPI_IN_PLACE ? into : from, count, shape, on->across, &own));
    TRY(status, allgather_speakers(on, own.at, own.length, room));
    int last = inclusive ? on->rank : on->rank - 1;
    /* From the last to the first: MPI_Reduce_local puts what it is given before what is there. */
    for (int rank = last; rank >= 0 && status == MPI_SUCCESS; rank--) {
        const char *part = room + (on->first[on->site_of[rank]] + on->local_rank_of[rank]) * own.length;
        if (rank == last) {
            status = unpack(part, own.length, into, count, shape, on->across);
        } else {
            status = unpack(part, own.length, origin, count, shape, on->across);
            TRY(status, real.Reduce_local(origin, into, count, shape->type, op));
        }
    }
    bytes_free(&own);
    free(room);
    free(memory);
    return status;
}
