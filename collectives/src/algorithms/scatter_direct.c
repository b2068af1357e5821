/* R/2 + n s/B: the root sends to everybody at once, to other sites first. */
#include "algorithms.h"

#include <stdlib.h>

int scatter_direct(struct levels *on, const void *from, const MPI_Count counts[], const MPI_Aint places[],
                   MPI_Datatype from_type, void *into, MPI_Count count, MPI_Datatype type, int root)
{
    struct requests some = {0};
    int status = MPI_SUCCESS;
    if (into != MPI_IN_PLACE)
        TRY(status, requests_receive(&some, on, into, count, type, root, TAG_SCATTER));
    for (int here = 0; here < 2 && on->rank == root; here++)
        for (int i = 0; i < on->size; i++)
            if ((on->site_of[i] == on->site) == here && (i != root || into != MPI_IN_PLACE))
                TRY(status,
                    requests_send(&some, on, (const char *)from + places[i], counts[i], from_type, i, TAG_SCATTER));
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}
