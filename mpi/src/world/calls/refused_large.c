/* Calls with large counts, which do not work over sites yet: native within a site. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"

#if MPI_VERSION >= 4
REFUSE(Iallgatherv_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
        const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request))
REFUSE(Ialltoallv_c, comm,
       (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
        void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
        MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request))
REFUSE(Ialltoallw_c, comm,
       (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
        const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
        const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request))
REFUSE(Igatherv_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
        const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, request))
REFUSE(Ireduce_scatter_c, comm,
       (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op,
        MPI_Comm comm, MPI_Request *request),
       (sendbuf, recvbuf, recvcounts, datatype, op, comm, request))
REFUSE(Iscatterv_c, comm,
       (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
        void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, request))
REFUSE(Isendrecv_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
        MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
        request))
REFUSE(Isendrecv_replace_c, comm,
       (void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
        MPI_Comm comm, MPI_Request *request),
       (buf, count, datatype, dest, sendtag, source, recvtag, comm, request))
#endif
