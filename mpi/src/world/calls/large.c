/* Calls with large counts, of MPI 4: those whose counts are as small as ever are the same as without. Larger
 * ones are native within a site, and refused over sites. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"

#if MPI_VERSION >= 4

#include <limits.h>

#define LARGE(name, comm, fits, PARAMETERS, ARGUMENTS, SMALL)    \
    EXPORT int MPI_##name##_c PARAMETERS                         \
    {                                                            \
        static int is_told;                                      \
        static int(*own) PARAMETERS;                             \
        if (fits)                                                \
            return MPI_##name SMALL;                             \
        if (refuse_is_over_sites(comm))                          \
            return refuse(comm, "MPI_" #name "_c", &is_told);    \
        if (!own)                                                \
            own = (int(*) PARAMETERS)mpi_calls_find(#name "_c"); \
        return own ? own ARGUMENTS : NO_MPI;                     \
    }                                                            \
    BOTH(name##_c);

LARGE(Send, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
      (buf, count, datatype, dest, tag, comm), (buf, (int)count, datatype, dest, tag, comm))
LARGE(Ssend, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
      (buf, count, datatype, dest, tag, comm), (buf, (int)count, datatype, dest, tag, comm))
LARGE(Rsend, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
      (buf, count, datatype, dest, tag, comm), (buf, (int)count, datatype, dest, tag, comm))
LARGE(Bsend, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
      (buf, count, datatype, dest, tag, comm), (buf, (int)count, datatype, dest, tag, comm))
LARGE(Isend, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, dest, tag, comm, request), (buf, (int)count, datatype, dest, tag, comm, request))
LARGE(Issend, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, dest, tag, comm, request), (buf, (int)count, datatype, dest, tag, comm, request))
LARGE(Irsend, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, dest, tag, comm, request), (buf, (int)count, datatype, dest, tag, comm, request))
LARGE(Ibsend, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, dest, tag, comm, request), (buf, (int)count, datatype, dest, tag, comm, request))
LARGE(Recv, comm, count <= INT_MAX,
      (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
       MPI_Status *status),
      (buf, count, datatype, source, tag, comm, status),
      (buf, (int)count, datatype, source, tag, comm, status))
LARGE(Irecv, comm, count <= INT_MAX,
      (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, source, tag, comm, request),
      (buf, (int)count, datatype, source, tag, comm, request))
LARGE(Sendrecv, comm, sendcount <= INT_MAX && recvcount <= INT_MAX,
      (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
       MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
       MPI_Status *status),
      (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
       status),
      (sendbuf, (int)sendcount, sendtype, dest, sendtag, recvbuf, (int)recvcount, recvtype, source, recvtag,
       comm, status))
LARGE(Sendrecv_replace, comm, count <= INT_MAX,
      (void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
       MPI_Comm comm, MPI_Status *status),
      (buf, count, datatype, dest, sendtag, source, recvtag, comm, status),
      (buf, (int)count, datatype, dest, sendtag, source, recvtag, comm, status))
LARGE(Send_init, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, dest, tag, comm, request), (buf, (int)count, datatype, dest, tag, comm, request))
LARGE(Ssend_init, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, dest, tag, comm, request), (buf, (int)count, datatype, dest, tag, comm, request))
LARGE(Rsend_init, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, dest, tag, comm, request), (buf, (int)count, datatype, dest, tag, comm, request))
LARGE(Bsend_init, comm, count <= INT_MAX,
      (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, dest, tag, comm, request), (buf, (int)count, datatype, dest, tag, comm, request))
LARGE(Recv_init, comm, count <= INT_MAX,
      (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buf, count, datatype, source, tag, comm, request),
      (buf, (int)count, datatype, source, tag, comm, request))
LARGE(Bcast, comm, count <= INT_MAX,
      (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm),
      (buffer, count, datatype, root, comm), (buffer, (int)count, datatype, root, comm))
LARGE(Gather, comm, sendcount <= INT_MAX && recvcount <= INT_MAX,
      (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
       MPI_Datatype recvtype, int root, MPI_Comm comm),
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
      (sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, root, comm))
LARGE(Scatter, comm, sendcount <= INT_MAX && recvcount <= INT_MAX,
      (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
       MPI_Datatype recvtype, int root, MPI_Comm comm),
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
      (sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, root, comm))
LARGE(Allgather, comm, sendcount <= INT_MAX && recvcount <= INT_MAX,
      (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
       MPI_Datatype recvtype, MPI_Comm comm),
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
      (sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, comm))
LARGE(Alltoall, comm, sendcount <= INT_MAX && recvcount <= INT_MAX,
      (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
       MPI_Datatype recvtype, MPI_Comm comm),
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
      (sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, comm))
LARGE(Reduce, comm, count <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
       MPI_Comm comm),
      (sendbuf, recvbuf, count, datatype, op, root, comm),
      (sendbuf, recvbuf, (int)count, datatype, op, root, comm))
LARGE(Allreduce, comm, count <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
      (sendbuf, recvbuf, count, datatype, op, comm), (sendbuf, recvbuf, (int)count, datatype, op, comm))
LARGE(Reduce_scatter_block, comm, recvcount <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
       MPI_Comm comm),
      (sendbuf, recvbuf, recvcount, datatype, op, comm),
      (sendbuf, recvbuf, (int)recvcount, datatype, op, comm))
LARGE(Scan, comm, count <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
      (sendbuf, recvbuf, count, datatype, op, comm), (sendbuf, recvbuf, (int)count, datatype, op, comm))
LARGE(Exscan, comm, count <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
      (sendbuf, recvbuf, count, datatype, op, comm), (sendbuf, recvbuf, (int)count, datatype, op, comm))
LARGE(Ibcast, comm, count <= INT_MAX,
      (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request),
      (buffer, count, datatype, root, comm, request), (buffer, (int)count, datatype, root, comm, request))
LARGE(Igather, comm, sendcount <= INT_MAX && recvcount <= INT_MAX,
      (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request),
      (sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, root, comm, request))
LARGE(Iscatter, comm, sendcount <= INT_MAX && recvcount <= INT_MAX,
      (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request),
      (sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, root, comm, request))
LARGE(Iallgather, comm, sendcount <= INT_MAX && recvcount <= INT_MAX,
      (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
       MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request),
      (sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, comm, request))
LARGE(Ialltoall, comm, sendcount <= INT_MAX && recvcount <= INT_MAX,
      (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
       MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request),
      (sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, comm, request))
LARGE(Ireduce, comm, count <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
       MPI_Comm comm, MPI_Request *request),
      (sendbuf, recvbuf, count, datatype, op, root, comm, request),
      (sendbuf, recvbuf, (int)count, datatype, op, root, comm, request))
LARGE(Iallreduce, comm, count <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
       MPI_Request *request),
      (sendbuf, recvbuf, count, datatype, op, comm, request),
      (sendbuf, recvbuf, (int)count, datatype, op, comm, request))
LARGE(Ireduce_scatter_block, comm, recvcount <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
       MPI_Comm comm, MPI_Request *request),
      (sendbuf, recvbuf, recvcount, datatype, op, comm, request),
      (sendbuf, recvbuf, (int)recvcount, datatype, op, comm, request))
LARGE(Iscan, comm, count <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
       MPI_Request *request),
      (sendbuf, recvbuf, count, datatype, op, comm, request),
      (sendbuf, recvbuf, (int)count, datatype, op, comm, request))
LARGE(Iexscan, comm, count <= INT_MAX,
      (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
       MPI_Request *request),
      (sendbuf, recvbuf, count, datatype, op, comm, request),
      (sendbuf, recvbuf, (int)count, datatype, op, comm, request))

EXPORT int MPI_Mrecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message,
                       MPI_Status *status)
{
    if (count <= INT_MAX)
        return MPI_Mrecv(buf, (int)count, datatype, message, status);
    if (ours.is_on)
        return comm_error(comm_find(handle.comm_world), MPI_ERR_COUNT);
    OTHER("Mrecv_c", (void *, MPI_Count, MPI_Datatype, MPI_Message *, MPI_Status *), buf, count, datatype,
          message, status);
}
BOTH(Mrecv_c);

EXPORT int MPI_Imrecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message,
                        MPI_Request *request)
{
    if (count <= INT_MAX)
        return MPI_Imrecv(buf, (int)count, datatype, message, request);
    if (ours.is_on)
        return comm_error(comm_find(handle.comm_world), MPI_ERR_COUNT);
    OTHER("Imrecv_c", (void *, MPI_Count, MPI_Datatype, MPI_Message *, MPI_Request *), buf, count, datatype,
          message, request);
}
BOTH(Imrecv_c);

#endif
