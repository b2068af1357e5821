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

/* Returns MPI_SUCCESS, or the error with which it has called the communicator's error handler. */
int sendrecv_check(const struct sendrecv *both);
/* Sends and receives; may block. */
int sendrecv_do(const struct sendrecv *both, MPI_Status *status);
/* The same, with the received data replacing the sent data. */
int sendrecv_replace(const struct sendrecv *both, MPI_Status *status);

#endif
