/* Blocking collective operations: of a site natively, over sites by plain/. */
#define _GNU_SOURCE
#include "world/below/local.h"
#include "world/calls/check.h"
#include "world/plain/plain.h"

EXPORT int MPI_Barrier(MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    return on ? comm_error(on, plain_barrier(on->hidden)) : LOCAL(Barrier, Ibarrier, comm);
}
BOTH(Barrier);

EXPORT int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Bcast, Ibcast, buffer, count, type, root, comm);
    int status = check_root(on, root);
    return status != MPI_SUCCESS ? status
                                 : comm_error(on, plain_bcast(on->hidden, buffer, count, type, root));
}
BOTH(Bcast);

EXPORT int MPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                      int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Gather, Igather, send, send_count, send_type, receive, receive_count, receive_type, root,
                     comm);
    struct blocks into = {0};
    int status = check_root(on, root);
    if (status != MPI_SUCCESS)
        return status;
    if (on->rank == root)
        status = blocks_even(&into, receive, receive_count, receive_type);
    TRY(status, plain_gather(on->hidden, send, send_count, send_type, &into, root));
    return comm_error(on, status);
}
BOTH(Gather);

EXPORT int MPI_Gatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                       const int counts[], const int starts[], MPI_Datatype receive_type, int root,
                       MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Gatherv, Igatherv, send, send_count, send_type, receive, counts, starts, receive_type,
                     root, comm);
    struct blocks into = {0};
    int status = check_root(on, root);
    if (status != MPI_SUCCESS)
        return status;
    if (on->rank == root)
        status = blocks_listed(&into, receive, counts, starts, receive_type);
    TRY(status, plain_gather(on->hidden, send, send_count, send_type, &into, root));
    return comm_error(on, status);
}
BOTH(Gatherv);

EXPORT int MPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                       int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Scatter, Iscatter, send, send_count, send_type, receive, receive_count, receive_type,
                     root, comm);
    struct blocks from = {0};
    int status = check_root(on, root);
    if (status != MPI_SUCCESS)
        return status;
    if (on->rank == root)
        status = blocks_even(&from, send, send_count, send_type);
    TRY(status, plain_scatter(on->hidden, &from, receive, receive_count, receive_type, root));
    return comm_error(on, status);
}
BOTH(Scatter);

EXPORT int MPI_Scatterv(const void *send, const int counts[], const int starts[], MPI_Datatype send_type,
                        void *receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Scatterv, Iscatterv, send, counts, starts, send_type, receive, receive_count,
                     receive_type, root, comm);
    struct blocks from = {0};
    int status = check_root(on, root);
    if (status != MPI_SUCCESS)
        return status;
    if (on->rank == root)
        status = blocks_listed(&from, send, counts, starts, send_type);
    TRY(status, plain_scatter(on->hidden, &from, receive, receive_count, receive_type, root));
    return comm_error(on, status);
}
BOTH(Scatterv);

EXPORT int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                         int receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Allgather, Iallgather, send, send_count, send_type, receive, receive_count, receive_type,
                     comm);
    struct blocks into;
    int status = blocks_even(&into, receive, receive_count, receive_type);
    TRY(status, plain_allgather(on->hidden, send, send_count, send_type, &into));
    return comm_error(on, status);
}
BOTH(Allgather);

EXPORT int MPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                          const int counts[], const int starts[], MPI_Datatype receive_type, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Allgatherv, Iallgatherv, send, send_count, send_type, receive, counts, starts,
                     receive_type, comm);
    struct blocks into;
    int status = blocks_listed(&into, receive, counts, starts, receive_type);
    TRY(status, plain_allgather(on->hidden, send, send_count, send_type, &into));
    return comm_error(on, status);
}
BOTH(Allgatherv);

EXPORT int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Alltoall, Ialltoall, send, send_count, send_type, receive, receive_count, receive_type,
                     comm);
    struct blocks from, into;
    int status = blocks_even(&from, send, send_count, send_type);
    TRY(status, blocks_even(&into, receive, receive_count, receive_type));
    TRY(status, plain_alltoall(on->hidden, &from, &into));
    return comm_error(on, status);
}
BOTH(Alltoall);

EXPORT int MPI_Alltoallv(const void *send, const int send_counts[], const int send_starts[],
                         MPI_Datatype send_type, void *receive, const int receive_counts[],
                         const int receive_starts[], MPI_Datatype receive_type, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Alltoallv, Ialltoallv, send, send_counts, send_starts, send_type, receive,
                     receive_counts, receive_starts, receive_type, comm);
    struct blocks from, into;
    int status = blocks_listed(&from, send, send_counts, send_starts, send_type);
    TRY(status, blocks_listed(&into, receive, receive_counts, receive_starts, receive_type));
    TRY(status, plain_alltoall(on->hidden, &from, &into));
    return comm_error(on, status);
}
BOTH(Alltoallv);

EXPORT int MPI_Alltoallw(const void *send, const int send_counts[], const int send_starts[],
                         const MPI_Datatype send_types[], void *receive, const int receive_counts[],
                         const int receive_starts[], const MPI_Datatype receive_types[], MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Alltoallw, Ialltoallw, send, send_counts, send_starts, send_types, receive,
                     receive_counts, receive_starts, receive_types, comm);
    struct blocks from, into;
    int status = blocks_typed(&from, send, send_counts, send_starts, send_types);
    TRY(status, blocks_typed(&into, receive, receive_counts, receive_starts, receive_types));
    TRY(status, plain_alltoall(on->hidden, &from, &into));
    return comm_error(on, status);
}
BOTH(Alltoallw);
