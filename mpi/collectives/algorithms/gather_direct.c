/* R/2 + n s/B: every rank sends to the root at once. No rank waits for another inside a site, and data is
 * copied only where the MPI would otherwise make it wait (requests_send_cut). */
#include "collectives/algorithms/algorithms.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

#include <stdlib.h>

int gather_direct(struct hierarchy *on, const void *from, MPI_Count count, MPI_Datatype type, void *into,
                  const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype into_type, int root)
{
    struct requests some = {0};
    struct shape shape, into_shape;
    int takes = on->rank == root ? on->size : 0, gives = from != MPI_IN_PLACE, status = MPI_SUCCESS;
    struct bytes own = {0}, *parts = calloc(takes + 1, sizeof *parts);
    if (!parts)
        return MPI_ERR_NO_MEM;
    if ((takes && !shape_of(into_type, &into_shape)) || (gives && !shape_of(type, &shape)))
        status = MPI_ERR_TYPE;
    for (int i = 0; i < takes; i++)
        if (i != root || gives)
            TRY(status, requests_receive_cut(&some, on, (char *)into + displs[i], counts[i], &into_shape, i,
                                             TAG_GATHER, &parts[i]));
    if (gives)
        TRY(status, requests_send_cut(&some, on, from, count, &shape, root, TAG_GATHER, &own));
    TRY(status, requests_wait(&some));
    for (int i = 0; i < takes; i++)
        TRY(status, bytes_unpack(&parts[i], (char *)into + displs[i], counts[i], &into_shape));
    requests_free(&some, status);
    for (int i = 0; i < takes; i++)
        bytes_free(&parts[i]);
    free(parts);
    bytes_free(&own);
    return status;
}
