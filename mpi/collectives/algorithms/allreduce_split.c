/* R + 2 s/(S B), for three or more sites: each rank combines its part from all sites
 * (reduce_scatter_multi_leader), and sends it to all ranks (allgather_multi_leader). If sites exchanged
 * everything, each would send s to all S - 1 others; this way each sends only 2 s (S - 1)/S, and no site
 * combines more than its share. With a hub, only the hub's ranks have parts: s crosses once to and once from
 * each other site, and nothing crosses between the other sites. Both ways give the same bits. */
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
