/* Persistent operations on communicators that span sites. The program holds a native request that is
 * never started; while ours is active, completion calls are given the request of that message in its place.
 */
#ifndef CAUSEWAY_WORLD_PERSISTENT_H
#define CAUSEWAY_WORLD_PERSISTENT_H

#include "world/handles/comms.h"

struct persistent {
    struct comm *comm;
    /* What starts it: the call of the non-blocking form, with these arguments. */
    int (*start)(const struct persistent *persistent, MPI_Request *request);
    void *buffer;
    int count, peer, tag;
    MPI_Datatype type;
    /* What the program holds; the message's, or null while it is not active. */
    MPI_Request handle, active;
    /* The type is a duplicate of ours: the program may free its own once the request is made. */
    int has_type;
    /* The call of a collective operation; NULL of others. */
    void *collective;
};

#endif
