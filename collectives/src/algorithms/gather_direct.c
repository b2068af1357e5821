/* R/2 + n s/B: everybody sends to the root at once. Nothing waits inside a site, and nothing is copied but what an MPI would have wait. */
#include "algorithms.h"

#include <stdlib.h>

static int collect(struct levels *on, void *into, const MPI_Count counts[], const MPI_Aint places[], MPI_Datatype type, int skips, int64_t flit,
                   struct requests *some, struct bytes *parts)
{
    struct shape shape;
    int status = shape_of(type, &shape) ? MPI_SUCCESS : MPI_ERR_TYPE;
    for (int i = 0; i < on->size; i++)
        if (i != on->rank || !skips)
            TRY(status, requests_receive_cut(some, on, (char *)into + places[i], counts[i], &shape, i, TAG_GATHER, flit, &parts[i]));
    return status;
}

static int take_out(struct levels *on, void *into, const MPI_Count counts[], const MPI_Aint places[], MPI_Datatype type, const struct bytes *parts)
{
    struct shape shape;
    int status = shape_of(type, &shape) ? MPI_SUCCESS : MPI_ERR_TYPE;
    for (int i = 0; i < on->size; i++)
        TRY(status, bytes_unpack(&parts[i], (char *)into + places[i], counts[i], &shape, on->across));
    return status;
}

int gather_direct(struct levels *on, const void *from, MPI_Count count, MPI_Datatype type, void *into, const MPI_Count counts[],
                  const MPI_Aint places[], MPI_Datatype into_type, int root, int64_t flit)
{
    struct requests some = {0};
    struct bytes own = {0}, *parts = NULL;
    struct shape shape;
    int is_root = on->rank == root, skips = from == MPI_IN_PLACE, status = MPI_SUCCESS;
    if (is_root && !(parts = calloc(on->size, sizeof *parts)))
        return MPI_ERR_NO_MEM;
    if (is_root)
        status = collect(on, into, counts, places, into_type, skips, flit, &some, parts);
    if (!skips && status == MPI_SUCCESS)
        status = shape_of(type, &shape) ? requests_send_cut(&some, on, from, count, &shape, root, TAG_GATHER, flit, &own) : MPI_ERR_TYPE;
    TRY(status, requests_wait(&some));
    if (is_root)
        TRY(status, take_out(on, into, counts, places, into_type, parts));
    requests_free(&some, status);
    for (int i = 0; is_root && i < on->size; i++)
        bytes_free(&parts[i]);
    free(parts);
    bytes_free(&own);
    return status;
}
