/* A message on a communicator that spans sites, native or far. For blocking calls, and for collective
 * operations. */
#ifndef CAUSEWAY_WORLD_TRANSFER_H
#define CAUSEWAY_WORLD_TRANSFER_H

#include "world/native/far.h"

struct transfer {
    /* Zero if there is nothing to wait for. */
    enum { NOTHING, NATIVE, NATIVE_RECEIVE, FAR_AWAY } kind;
    struct comm *comm;
    MPI_Request request;
    struct far far;
};

/* Begin a message, whose arguments must be valid; a rank may be MPI_PROC_NULL. They return an MPI error
 * code. */
int transfer_send(struct transfer *transfer, struct comm *comm, const void *buffer, int count,
                  MPI_Datatype type, int to, int tag);
int transfer_receive(struct transfer *transfer, struct comm *comm, void *buffer, int count, MPI_Datatype type,
                     int from, int tag);
/* Waits for it. `status` may be MPI_STATUS_IGNORE. */
int transfer_wait(struct transfer *transfer, MPI_Status *status);
/* Waits for all, and returns the first error. */
int transfer_wait_all(struct transfer *transfers, int count);

/* Begin a message and wait for it. */
int transfer_send_now(struct comm *comm, const void *buffer, int count, MPI_Datatype type, int to, int tag);
int transfer_receive_now(struct comm *comm, void *buffer, int count, MPI_Datatype type, int from, int tag,
                         MPI_Status *status);

/* Whether a receive can be passed directly to the site's MPI. */
int transfer_is_native(const struct comm *comm, int from, int tag);
/* Replaces the source of a native receive by its rank in the communicator. */
void transfer_name_source(const struct comm *comm, MPI_Status *status);

#endif
