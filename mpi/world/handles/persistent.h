/* Persistent operations on communicators that span sites. The program holds a native request that is never
 * started; while ours is active, the request of its message is passed to completion calls in its place. */
#ifndef CAUSEWAY_WORLD_PERSISTENT_H
#define CAUSEWAY_WORLD_PERSISTENT_H

#include "world/handles/comms.h"

struct persistent {
    struct comm *comm;
    /* Starts it: calls the non-blocking form with these arguments. */
    int (*start)(const struct persistent *persistent, MPI_Request *request);
    void *buffer;
    int count, peer, tag;
    MPI_Datatype type;
    /* The request that the program holds; the message's request, MPI_REQUEST_NULL while it is not active. */
    MPI_Request handle, active;
    /* Whether `type` is our duplicate, because the program may free its own once the request is made. */
    int has_type;
    /* The call of a collective operation; NULL for others. */
    void *collective;
};

#endif
