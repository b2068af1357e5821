/* R + s/B to and from the farthest site, for three or more sites, two of which are far from each other:
 * reduces to one rank of a site that is near all of them, and broadcasts from there. It combines in the order
 * of sites, as allreduce_segments does, so both give the same bits. */
#include "collectives/algorithms/algorithms.h"

int allreduce_hub(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                  MPI_Op op, int hub, int64_t segment)
{
    int root = leader(on, hub, -1);
    const void *own = from == MPI_IN_PLACE && on->rank != root ? into : from;
    int status = reduce_segments(on, own, into, count, shape, op, root, segment);
    TRY(status, bcast_segments(on, into, count, shape, root, segment));
    return status;
}
