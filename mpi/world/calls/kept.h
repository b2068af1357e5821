/* What a completion call must record of requests before it passes them to the MPI, which sets them to
 * MPI_REQUEST_NULL. */
#ifndef CAUSEWAY_WORLD_KEPT_H
#define CAUSEWAY_WORLD_KEPT_H

#include "world/handles/requests.h"

struct kept {
    MPI_Request handle;
    struct request is;
    /* The active persistent operation whose message's request is passed to the MPI in its place, or NULL. */
    struct persistent *persistent;
};

struct keeping {
    struct kept few[16], *all;
    MPI_Request *requests;
    int count;
};

/* Records all requests, keeps their records alive, and replaces active persistent ones by the requests of
 * their messages. Returns false if none of them is ours, or memory is exhausted. */
int keep(struct keeping *keeping, int count, MPI_Request requests[]);

/* Called when request i has completed: corrects the source in its status, and removes its record. Returns its
 * error, for which no error handler has been called yet; *of is the communicator. */
int kept_completes(struct keeping *keeping, int i, MPI_Status *status, struct comm **of);

/* Releases the records of the other requests, and puts persistent ones back. */
void keep_end(struct keeping *keeping);

#endif
