/* Collective operations that do not wait, which do not work over sites yet: native within a site. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"

REFUSE(Iallgather, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
        MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
REFUSE(Iallgatherv, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
        const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request))
REFUSE(Iallreduce, comm,
       (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, recvbuf, count, datatype, op, comm, request))
REFUSE(Ialltoall, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
        MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
REFUSE(Ialltoallv, comm,
       (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
        void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request))
REFUSE(Ialltoallw, comm,
       (const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
        void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[],
        MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request))
REFUSE(Ibarrier, comm, (MPI_Comm comm, MPI_Request *request), (comm, request))
REFUSE(Ibcast, comm,
       (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request),
       (buffer, count, datatype, root, comm, request))
REFUSE(Iexscan, comm,
       (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, recvbuf, count, datatype, op, comm, request))
REFUSE(Igather, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
        MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request))
REFUSE(Igatherv, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
        const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, request))
REFUSE(Ireduce, comm,
       (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
        MPI_Comm comm, MPI_Request *request),
       (sendbuf, recvbuf, count, datatype, op, root, comm, request))
REFUSE(Ireduce_scatter, comm,
       (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
        MPI_Comm comm, MPI_Request *request),
       (sendbuf, recvbuf, recvcounts, datatype, op, comm, request))
REFUSE(Ireduce_scatter_block, comm,
       (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, recvbuf, recvcount, datatype, op, comm, request))
REFUSE(Iscan, comm,
       (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, recvbuf, count, datatype, op, comm, request))
REFUSE(Iscatter, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
        MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request))
REFUSE(Iscatterv, comm,
       (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
        int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, request))
