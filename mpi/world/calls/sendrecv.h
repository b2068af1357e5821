/* A send and a receive in one call, over sites. */
#ifndef CAUSEWAY_WORLD_SENDRECV_H
#define CAUSEWAY_WORLD_SENDRECV_H

#include "world/native/transfer.h"

struct sendrecv {
    struct comm *on;
    const void *out;
    int out_count;
    MPI_Datatype out_type;
    int to, out_tag;
    void *in;
    int in_count;
    MPI_Datatype in_type;
    int from, in_tag;
};

/* Returns MPI_SUCCESS, or what the communicator's error handler has been called with. */
int sendrecv_check(const struct sendrecv *both);
/* Sends and receives; it may wait. */
int sendrecv_do(const struct sendrecv *both, MPI_Status *status);
/* The same where what comes takes the place of what goes. */
int sendrecv_replace(const struct sendrecv *both, MPI_Status *status);

#endif
