/* Requests of which this library knows more than the MPI: those of messages between sites, and native
 * receives on a communicator that spans sites, whose status has a native rank as source. */
#ifndef CAUSEWAY_WORLD_REQUESTS_H
#define CAUSEWAY_WORLD_REQUESTS_H

#include "world/handles/comms.h"

struct far;
struct persistent;

/* At most one is set. `comm` is held until request_remove. */
struct request {
    struct comm *comm;
    struct far *far;
    struct persistent *persistent;
};

int requests_any(void);
struct request request_find(MPI_Request request);
/* Return MPI_SUCCESS or MPI_ERR_NO_MEM. */
int request_add_native(MPI_Request request, struct comm *comm);
int request_add_far(MPI_Request request, struct far *far);
int request_add_persistent(MPI_Request request, struct persistent *persistent);
/* Called when a completion call has set the request to MPI_REQUEST_NULL, or freed it. */
void request_remove(MPI_Request request);

#endif
