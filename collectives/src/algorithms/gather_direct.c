/* R/2 + n s/B: everybody sends to the root at once. Nothing waits inside a site, and nothing is copied. */
#include "algorithms.h"

#include <stdlib.h>

int gather_direct(struct levels *on, const void *from, MPI_Count count, MPI_Datatype type, void *into, const MPI_Count counts[],
                  const MPI_Aint places[], MPI_Datatype into_type, int root)
{
    struct requests some = {0};
    int status = MPI_SUCCESS;
    if (on->rank == root)
        for (int i = 0; i < on->size; i++)
            if (i != root || from != MPI_IN_PLACE)
                TRY(status, requests_receive(&some, on, (char *)into + places[i], counts[i], into_type, i, TAG_GATHER));
    if (from != MPI_IN_PLACE)
        TRY(status, requests_send(&some, on, from, count, type, root, TAG_GATHER));
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}
