/* Operations among neighbours in forms that do not work over sites yet: native within a site. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"

REFUSE(Ineighbor_allgather, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
        MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
REFUSE(Ineighbor_allgatherv, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
        const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request))
REFUSE(Ineighbor_alltoall, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
        MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
REFUSE(Ineighbor_alltoallv, comm,
       (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
        void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request))
REFUSE(Ineighbor_alltoallw, comm,
       (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
        void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
        MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request))
