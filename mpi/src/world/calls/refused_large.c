/* Calls with large counts, which do not work over sites yet: native within a site. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"

REFUSE_MEETING(Allgather_c, comm,
               (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm),
               (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
REFUSE_MEETING(Allgatherv_c, comm,
               (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm),
               (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))
REFUSE_MEETING(Allreduce_c, comm,
               (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                MPI_Comm comm),
               (sendbuf, recvbuf, count, datatype, op, comm))
REFUSE_MEETING(Alltoall_c, comm,
               (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm),
               (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
REFUSE_MEETING(Alltoallv_c, comm,
               (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                MPI_Datatype recvtype, MPI_Comm comm),
               (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))
REFUSE_MEETING(Alltoallw_c, comm,
               (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
                const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
               (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm))
REFUSE_MEETING(Bcast_c, comm, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm),
               (buffer, count, datatype, root, comm))
REFUSE(Bsend_c, comm,
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
       (buf, count, datatype, dest, tag, comm))
REFUSE_MEETING(Exscan_c, comm,
               (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                MPI_Comm comm),
               (sendbuf, recvbuf, count, datatype, op, comm))
REFUSE_MEETING(Gather_c, comm,
               (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
               (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))
REFUSE_MEETING(Gatherv_c, comm,
               (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
                MPI_Comm comm),
               (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm))
REFUSE(Iallgather_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
        MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
REFUSE(Iallgatherv_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
        const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request))
REFUSE(Iallreduce_c, comm,
       (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, recvbuf, count, datatype, op, comm, request))
REFUSE(Ialltoall_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
        MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
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
REFUSE(Ibcast_c, comm,
       (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request),
       (buffer, count, datatype, root, comm, request))
REFUSE(Ibsend_c, comm,
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
        MPI_Request *request),
       (buf, count, datatype, dest, tag, comm, request))
REFUSE(Iexscan_c, comm,
       (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, recvbuf, count, datatype, op, comm, request))
REFUSE(Igather_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
        MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request))
REFUSE(Igatherv_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
        const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, request))
REFUSE(Irecv_c, comm,
       (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
        MPI_Request *request),
       (buf, count, datatype, source, tag, comm, request))
REFUSE(Ireduce_c, comm,
       (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
        MPI_Comm comm, MPI_Request *request),
       (sendbuf, recvbuf, count, datatype, op, root, comm, request))
REFUSE(Ireduce_scatter_block_c, comm,
       (const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
        MPI_Comm comm, MPI_Request *request),
       (sendbuf, recvbuf, recvcount, datatype, op, comm, request))
REFUSE(Ireduce_scatter_c, comm,
       (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op,
        MPI_Comm comm, MPI_Request *request),
       (sendbuf, recvbuf, recvcounts, datatype, op, comm, request))
REFUSE(Irsend_c, comm,
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
        MPI_Request *request),
       (buf, count, datatype, dest, tag, comm, request))
REFUSE(Iscan_c, comm,
       (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, recvbuf, count, datatype, op, comm, request))
REFUSE(Iscatter_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
        MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request))
REFUSE(Iscatterv_c, comm,
       (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
        void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
        MPI_Request *request),
       (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, request))
REFUSE(Isend_c, comm,
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
        MPI_Request *request),
       (buf, count, datatype, dest, tag, comm, request))
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
REFUSE(Issend_c, comm,
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
        MPI_Request *request),
       (buf, count, datatype, dest, tag, comm, request))
REFUSE(Recv_c, comm,
       (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
        MPI_Status *status),
       (buf, count, datatype, source, tag, comm, status))
REFUSE_MEETING(Reduce_c, comm,
               (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                int root, MPI_Comm comm),
               (sendbuf, recvbuf, count, datatype, op, root, comm))
REFUSE_MEETING(Reduce_scatter_block_c, comm,
               (const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                MPI_Comm comm),
               (sendbuf, recvbuf, recvcount, datatype, op, comm))
REFUSE_MEETING(Reduce_scatter_c, comm,
               (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
                MPI_Op op, MPI_Comm comm),
               (sendbuf, recvbuf, recvcounts, datatype, op, comm))
REFUSE(Rsend_c, comm,
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
       (buf, count, datatype, dest, tag, comm))
REFUSE_MEETING(Scan_c, comm,
               (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                MPI_Comm comm),
               (sendbuf, recvbuf, count, datatype, op, comm))
REFUSE_MEETING(Scatter_c, comm,
               (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
               (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))
REFUSE_MEETING(Scatterv_c, comm,
               (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                MPI_Comm comm),
               (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm))
REFUSE(Send_c, comm,
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
       (buf, count, datatype, dest, tag, comm))
REFUSE(Sendrecv_c, comm,
       (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
        MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
        MPI_Status *status),
       (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
        status))
REFUSE(Sendrecv_replace_c, comm,
       (void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
        MPI_Comm comm, MPI_Status *status),
       (buf, count, datatype, dest, sendtag, source, recvtag, comm, status))
REFUSE(Ssend_c, comm,
       (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
       (buf, count, datatype, dest, tag, comm))
