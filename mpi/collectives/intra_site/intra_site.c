#define _GNU_SOURCE
#include "collectives/intra_site/intra_site.h"

#include "collectives/topology/tags.h"
#include "collectives/transfer/requests.h"
#include "collectives/transfer/waiting.h"

#include <stdlib.h>

static int rank_of_local(const struct hierarchy *on, int number)
{
    return on->members[on->first[on->site] + number];
}

static int give(struct hierarchy *on, const void *from, int64_t count, MPI_Datatype type, int to)
{
    struct requests some = {0};
    int status = requests_send(&some, on, from, count, type, rank_of_local(on, to), TAG_INTRA_SITE);
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}

static int take(struct hierarchy *on, void *into, int64_t count, MPI_Datatype type, int from)
{
    struct requests some = {0};
    int status = requests_receive(&some, on, into, count, type, rank_of_local(on, from), TAG_INTRA_SITE);
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}

int intra_site_barrier(struct hierarchy *on)
{
    int status = MPI_SUCCESS, bit = 1;
    if (!waiting_is_beside())
        return real.Barrier(on->local);
    for (; bit < on->local_size && !(on->local_rank & bit); bit <<= 1)
        if (on->local_rank + bit < on->local_size)
            TRY(status, take(on, NULL, 0, handle.byte, on->local_rank + bit));
    if (on->local_rank > 0)
        TRY(status, give(on, NULL, 0, handle.byte, on->local_rank - bit));
    return status;
}

int intra_site_bcast(struct hierarchy *on, void *buffer, int count, MPI_Datatype type, int root)
{
    if (!waiting_is_beside())
        return real.Bcast(buffer, count, type, root, on->local);
    int all = on->local_size, own = (on->local_rank - root + all) % all, bit = 1, status = MPI_SUCCESS;
    struct requests some = {0};
    while (bit < all && !(own & bit))
        bit <<= 1;
    if (own > 0)
        status = take(on, buffer, count, type, (own - bit + root) % all);
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (own + bit < all)
            TRY(status, requests_send(&some, on, buffer, count, type,
                                      rank_of_local(on, (own + bit + root) % all), TAG_INTRA_SITE));
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}

/* Reduces to rank `first`, counting ranks from there. Each rank combines its sum with that of the ranks after
 * it. *sum is this rank's result. */
static int reduce_up(struct hierarchy *on, int first, void **sum, void **other, int count,
                     const struct shape *shape, MPI_Op op)
{
    int all = on->local_size, own = (on->local_rank - first + all) % all, bit = 1, status = MPI_SUCCESS;
    for (; bit < all && !(own & bit); bit <<= 1) {
        if (own + bit >= all)
            continue;
        TRY(status, take(on, *other, count, shape->type, (own + bit + first) % all));
        /* MPI_Reduce_local stores `in op inout` in inout. */
        TRY(status, real.Reduce_local(*sum, *other, count, shape->type, op));
        void *now = *other;
        *other = *sum;
        *sum = now;
    }
    if (own > 0)
        TRY(status, give(on, *sum, count, shape->type, (own - bit + first) % all));
    return status;
}

/* Intel MPI 2021.18 writes to the receive buffer at ranks other than the root, too: three ranks that share
 * memory crash without one. */
static int reduce_anywhere(struct hierarchy *on, const void *from, void *into, int count,
                           const struct shape *shape, MPI_Op op, int root)
{
    void *memory = NULL;
#if !defined(OPEN_MPI)
    if (on->local_rank != root && count > 0 && !(memory = elements(count, shape, &into)))
        return MPI_ERR_NO_MEM;
#endif
    int status = real.Reduce(from, into, count, shape->type, op, root, on->local);
    free(memory);
    return status;
}

int intra_site_reduce(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type,
                      MPI_Op op, int root)
{
    struct shape shape;
    int commutes = 0, status = shape_of(type, &shape) ? MPI_SUCCESS : MPI_ERR_TYPE;
    if (status != MPI_SUCCESS || !waiting_is_beside())
        return status == MPI_SUCCESS ? reduce_anywhere(on, from, into, count, &shape, op, root) : status;
    TRY(status, real.Op_commutative(op, &commutes));
    if (status != MPI_SUCCESS || count == 0)
        return status;
    int first = commutes ? root : 0;
    void *sum = NULL, *other = NULL, *memory = elements(count, &shape, &sum),
         *more = elements(count, &shape, &other);
    status = memory && more ? elements_copy(from == MPI_IN_PLACE ? into : from, sum, count, &shape)
                            : MPI_ERR_NO_MEM;
    TRY(status, reduce_up(on, first, &sum, &other, count, &shape, op));
    if (on->local_rank == first && first != root)
        TRY(status, give(on, sum, count, type, root));
    else if (on->local_rank == root && first != root)
        TRY(status, take(on, into, count, type, first));
    else if (on->local_rank == root)
        TRY(status, elements_copy(sum, into, count, &shape));
    free(memory);
    free(more);
    return status;
}

int intra_site_gather(struct hierarchy *on, const char *from, int64_t length, char *into, int root)
{
    if (!waiting_is_beside())
        return real.Gather(from, (int)length, handle.byte, into, (int)length, handle.byte, root, on->local);
    struct requests some = {0};
    int status = MPI_SUCCESS;
    for (int i = 0; i < on->local_size && on->local_rank == root; i++)
        TRY(status, requests_receive(&some, on, into + i * length, length, handle.byte, rank_of_local(on, i),
                                     TAG_INTRA_SITE));
    TRY(status, requests_send(&some, on, from, length, handle.byte, rank_of_local(on, root), TAG_INTRA_SITE));
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}

int intra_site_scatterv(struct hierarchy *on, const void *from, const int counts[], const int displs[],
                        MPI_Datatype type, void *into, int count, int root)
{
    if (!waiting_is_beside())
        return real.Scatterv(from, counts, displs, type, into, count, type, root, on->local);
    struct requests some = {0};
    struct shape shape;
    int status = shape_of(type, &shape)
                     ? requests_receive(&some, on, into, count, type, rank_of_local(on, root), TAG_INTRA_SITE)
                     : MPI_ERR_TYPE;
    for (int i = 0; i < on->local_size && on->local_rank == root; i++)
        TRY(status, requests_send(&some, on, element_at(from, displs[i], &shape), counts[i], type,
                                  rank_of_local(on, i), TAG_INTRA_SITE));
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}

int intra_site_scatter(struct hierarchy *on, const char *from, int64_t length, char *into, int root)
{
    if (!waiting_is_beside())
        return real.Scatter(from, (int)length, handle.byte, into, (int)length, handle.byte, root, on->local);
    struct requests some = {0};
    int status =
        requests_receive(&some, on, into, length, handle.byte, rank_of_local(on, root), TAG_INTRA_SITE);
    for (int i = 0; i < on->local_size && on->local_rank == root; i++)
        TRY(status, requests_send(&some, on, from + i * length, length, handle.byte, rank_of_local(on, i),
                                  TAG_INTRA_SITE));
    TRY(status, requests_wait(&some));
    requests_free(&some, status);
    return status;
}

/* If `inclusive`, each rank gets the sum up to and including itself; otherwise, the sum of the ranks before
 * it, if there are any. */
static int scan(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type, MPI_Op op,
                int inclusive)
{
    struct shape shape;
    if (!shape_of(type, &shape))
        return MPI_ERR_TYPE;
    if (count == 0)
        return MPI_SUCCESS;
    int is_first = on->local_rank == 0, status;
    void *sum = NULL, *before = NULL, *memory = elements(count, &shape, &sum),
         *more = elements(count, &shape, &before);
    status = memory && more ? elements_copy(from == MPI_IN_PLACE ? into : from, sum, count, &shape)
                            : MPI_ERR_NO_MEM;
    if (!is_first) {
        TRY(status, take(on, before, count, type, on->local_rank - 1));
        TRY(status, real.Reduce_local(before, sum, count, type, op));
    }
    if (on->local_rank + 1 < on->local_size)
        TRY(status, give(on, sum, count, type, on->local_rank + 1));
    if (inclusive || !is_first)
        TRY(status, elements_copy(inclusive ? sum : before, into, count, &shape));
    free(memory);
    free(more);
    return status;
}

int intra_site_scan(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type,
                    MPI_Op op)
{
    return waiting_is_beside() ? scan(on, from, into, count, type, op, 1)
                               : real.Scan(from, into, count, type, op, on->local);
}

int intra_site_exscan(struct hierarchy *on, const void *from, void *into, int count, MPI_Datatype type,
                      MPI_Op op)
{
    return waiting_is_beside() ? scan(on, from, into, count, type, op, 0)
                               : real.Exscan(from, into, count, type, op, on->local);
}
