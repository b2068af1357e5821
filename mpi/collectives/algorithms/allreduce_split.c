/* R + 2 s/(S B), for three sites and more: each rank puts its part together for all sites
 * (reduce_scatter_multi_leader), and hands it to all (allgather_multi_leader). Where sites exchange all they
 * have, s crosses S - 1 times from each; this way 2 s (S - 1)/S does, and no site puts together more than its
 * share. By way of a hub: only its ranks have parts, s crosses once from and to each other site, and nothing
 * between these. Which of both it is changes no bit. */
#include "collectives/algorithms/algorithms.h"

#include <stdlib.h>

int allreduce_split(struct hierarchy *on, const void *from, void *into, int count, const struct shape *shape,
                    MPI_Op op, int hub, int64_t segment)
{
    int *elements = calloc(on->size, sizeof *elements);
    MPI_Count *counts = calloc(on->size, sizeof *counts);
    MPI_Aint *displs = malloc(on->size * sizeof *displs);
    int status = elements && counts && displs ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    int64_t ranks = hub < 0 ? on->size : site_size(on, hub), at = 0, part = 0;
    for (int i = 0; i < on->size && status == MPI_SUCCESS; i++) {
        if (hub < 0 || on->site_of[i] == hub) {
            elements[i] = (int)(count * (part + 1) / ranks - count * part / ranks);
            part++;
        }
        counts[i] = elements[i];
        displs[i] = at * shape->extent;
        at += elements[i];
    }
    if (status == MPI_SUCCESS) {
        void *own = (char *)into + displs[on->rank];
        status = reduce_scatter_multi_leader(on, from == MPI_IN_PLACE ? into : from, own, elements, shape, op,
                                             segment);
        TRY(status, hand_out_blocks(on, own, counts, displs, into, shape, segment));
    }
    free(elements);
    free(counts);
    free(displs);
    return status;
}
