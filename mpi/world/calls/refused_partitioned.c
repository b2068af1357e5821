/* Partitioned messages, which do not work over sites yet. Within a site they are native. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"

REFUSE(Precv_init, comm,
       (void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
        MPI_Info info, MPI_Request *request),
       (buf, partitions, count, datatype, dest, tag, comm, info, request))
REFUSE(Psend_init, comm,
       (const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
        MPI_Comm comm, MPI_Info info, MPI_Request *request),
       (buf, partitions, count, datatype, dest, tag, comm, info, request))
