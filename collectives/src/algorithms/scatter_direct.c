/* R/2 + n s/B: the root sends to everybody at once, to other sites first. */
#include "algorithms.h"

#include <stdlib.h>

static int hand_out(struct levels *on, const void *from, const MPI_Count counts[], const MPI_Aint places[], MPI_Datatype type, int skips, int64_t flit,
                    struct requests *some, struct bytes *parts)
{
    struct shape shape;
    int status = shape_of(type, &shape) ? MPI_SUCCESS : MPI_ERR_TYPE;
    for (int here = 0; here < 2; here++)
        for (int i = 0; i < on->size; i++)
            if ((on->site_of[i] == on->site) == here && (i != on->rank || !skips))
                TRY(status, requests_send_cut(some, on, (const char *)from + places[i], counts[i], &shape, i, TAG_SCATTER, flit, &parts[i]));
    return status;
}

int scatter_direct(struct levels *on, const void *from, const MPI_Count counts[], const MPI_Aint places[],
                   MPI_Datatype from_type, void *into, MPI_Count count, MPI_Datatype type, int root, int64_t flit)
{
    struct requests some = {0};
    struct bytes own = {0}, *parts = NULL;
    struct shape shape;
    int is_root = on->rank == root, skips = into == MPI_IN_PLACE, status = MPI_SUCCESS;
    if (is_root && !(parts = calloc(on->size, sizeof *parts)))
        return MPI_ERR_NO_MEM;
    if (!skips)
        status = shape_of(type, &shape) ? requests_receive_cut(&some, on, into, count, &shape, root, TAG_SCATTER, flit, &own) : MPI_ERR_TYPE;
    if (is_root && status == MPI_SUCCESS)
        status = hand_out(on, from, counts, places, from_type, skips, flit, &some, parts);
    TRY(status, requests_wait(&some));
    if (!skips)
        TRY(status, bytes_unpack(&own, into, count, &shape, on->across));
    requests_free(&some, status);
    for (int i = 0; is_root && i < on->size; i++)
        bytes_free(&parts[i]);
    free(parts);
    bytes_free(&own);
    return status;
}
