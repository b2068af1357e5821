/* Sends and receives in one request, which do not work over sites yet: native within a site. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"

REFUSE(Isendrecv, comm,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
        int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request *request),
       (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
        request))
REFUSE(Isendrecv_replace, comm,
       (void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
        MPI_Comm comm, MPI_Request *request),
       (buf, count, datatype, dest, sendtag, source, recvtag, comm, request))
