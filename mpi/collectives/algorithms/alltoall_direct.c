/* R/2 + n n s/B: every rank sends everything at once, to other sites first; no step waits for another. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"

/* Both ends of a message agree on its size in bytes, but may differ in the count of a datatype of size 0. */
static int has_bytes(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size = 0;
    return count > 0 && real.Type_size_x(type, &size) == MPI_SUCCESS && size != 0;
}

int alltoall_direct(struct hierarchy *on, const void *from, const MPI_Count counts[], const MPI_Aint displs[],
                    const MPI_Datatype types[], void *into, const MPI_Count into_counts[],
                    const MPI_Aint into_displs[], const MPI_Datatype into_types[])
{
    struct requests some = {0};
    int status = MPI_SUCCESS;
    for (int i = 0; i < on->size; i++)
        if (has_bytes(into_counts[i], into_types[i]))
            TRY(status, requests_receive(&some, on, (char *)into + into_displs[i], into_counts[i],
                                         into_types[i], i, TAG_ALLTOALL));
    for (int here = 0; here < 2; here++)
        for (int i = 1; i <= on->size; i++) {
            /* Each rank starts with the rank after itself, so that not all send to the same rank at once. */
            int to = (on->rank + i) % on->size;
            if ((on->site_of[to] == on->site) == here && has_bytes(counts[to], types[to]))
                TRY(status, requests_send(&some, on, (const char *)from + displs[to], counts[to], types[to],
                                          to, TAG_ALLTOALL));
        }
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}
