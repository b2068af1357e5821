/* R/2 + n s/B: the root sends to all ranks at once, to other sites first. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

#include <stdlib.h>

int scatter_direct(struct hierarchy *on, const void *from, const MPI_Count counts[], const MPI_Aint displs[],
                   MPI_Datatype from_type, void *into, MPI_Count count, MPI_Datatype type, int root)
{
    struct requests some = {0};
    struct shape shape, from_shape;
    int gives = on->rank == root ? on->size : 0, takes = into != MPI_IN_PLACE, status = MPI_SUCCESS;
    struct bytes own = {0}, *parts = calloc(gives + 1, sizeof *parts);
    if (!parts)
        return MPI_ERR_NO_MEM;
    if ((gives && !shape_of(from_type, &from_shape)) || (takes && !shape_of(type, &shape)))
        status = MPI_ERR_TYPE;
    if (takes)
        TRY(status, requests_receive_cut(&some, on, into, count, &shape, root, TAG_SCATTER, &own));
    for (int here = 0; here < 2; here++)
        for (int i = 0; i < gives; i++)
            if ((on->site_of[i] == on->site) == here && (i != root || takes))
                TRY(status, requests_send_cut(&some, on, (const char *)from + displs[i], counts[i],
                                              &from_shape, i, TAG_SCATTER, &parts[i]));
    TRY(status, requests_wait(&some));
    if (takes)
        TRY(status, bytes_unpack(&own, into, count, &shape));
    requests_free(&some, status);
    for (int i = 0; i < gives; i++)
        bytes_free(&parts[i]);
    free(parts);
    bytes_free(&own);
    return status;
}
