/* What a completion call must know of requests before it hands them to the MPI, which sets them to null. */
#ifndef CAUSEWAY_WORLD_KEPT_H
#define CAUSEWAY_WORLD_KEPT_H

#include "world/handles/requests.h"

struct kept {
    MPI_Request handle;
    struct request is;
    /* The request stands for an active persistent one until the end. */
    struct persistent *persistent;
};

struct keeping {
    struct kept few[16], *all;
    MPI_Request *requests;
    int count;
};

/* Keeps all requests, and their records alive; puts messages in the place of active persistent ones. False
 * where none of them is ours, or there is no memory. */
int keep(struct keeping *keeping, int count, MPI_Request requests[]);

/* Request i has completed: its status names the right source, its record goes. Returns its error, for which
 * no handler has been called; the communicator is `*of`. */
int kept_completes(struct keeping *keeping, int i, MPI_Status *status, struct comm **of);

/* Lets go of the others, and gives persistent ones back. */
void keep_end(struct keeping *keeping);

#endif
