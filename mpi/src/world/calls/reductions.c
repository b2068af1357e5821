/* Blocking reductions: of a site natively, over sites by plain/. */
#define _GNU_SOURCE
#include "world/below/local.h"
#include "world/calls/check.h"
#include "world/plain/plain.h"

static int check(const struct comm *on, int count, MPI_Datatype type, MPI_Op op)
{
    int status = MPI_SUCCESS;
    if (count < 0)
        status = MPI_ERR_COUNT;
    else if (type == handle.datatype_null)
        status = MPI_ERR_TYPE;
    else if (op == handle.op_null)
        status = MPI_ERR_OP;
    return comm_error(on, status);
}

EXPORT int MPI_Reduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Reduce, Ireduce, send, receive, count, type, op, root, comm);
    int status = check(on, count, type, op);
    TRY(status, check_root(on, root));
    return status != MPI_SUCCESS
               ? status
               : comm_error(on, plain_reduce(on->hidden, send, receive, count, type, op, root));
}
BOTH(Reduce);

EXPORT int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Allreduce, Iallreduce, send, receive, count, type, op, comm);
    int status = check(on, count, type, op);
    return status != MPI_SUCCESS
               ? status
               : comm_error(on, plain_allreduce(on->hidden, send, receive, count, type, op));
}
BOTH(Allreduce);

EXPORT int MPI_Reduce_scatter(const void *send, void *receive, const int counts[], MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Reduce_scatter, Ireduce_scatter, send, receive, counts, type, op, comm);
    int status = check(on, 0, type, op);
    return status != MPI_SUCCESS
               ? status
               : comm_error(on, plain_reduce_scatter(on->hidden, send, receive, counts, 0, type, op));
}
BOTH(Reduce_scatter);

EXPORT int MPI_Reduce_scatter_block(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                                    MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Reduce_scatter_block, Ireduce_scatter_block, send, receive, count, type, op, comm);
    int status = check(on, count, type, op);
    return status != MPI_SUCCESS
               ? status
               : comm_error(on, plain_reduce_scatter(on->hidden, send, receive, NULL, count, type, op));
}
BOTH(Reduce_scatter_block);

EXPORT int MPI_Scan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Scan, Iscan, send, receive, count, type, op, comm);
    int status = check(on, count, type, op);
    return status != MPI_SUCCESS ? status
                                 : comm_error(on, plain_scan(on->hidden, send, receive, count, type, op));
}
BOTH(Scan);

EXPORT int MPI_Exscan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return LOCAL(Exscan, Iexscan, send, receive, count, type, op, comm);
    int status = check(on, count, type, op);
    return status != MPI_SUCCESS ? status
                                 : comm_error(on, plain_exscan(on->hidden, send, receive, count, type, op));
}
BOTH(Exscan);
