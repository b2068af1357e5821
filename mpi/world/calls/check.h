/* Checks the arguments of messages on a communicator that spans sites: the MPI below sees only messages that
 * stay within the site. */
#ifndef CAUSEWAY_WORLD_CHECK_H
#define CAUSEWAY_WORLD_CHECK_H

#include "common/binding/export.h"
#include "world/handles/comms.h"

/* Returns an error from a call on a communicator over sites that has nowhere to store its result. */
#define NEEDS(on, pointer)                        \
    do {                                          \
        if (!(pointer))                           \
            return comm_error((on), MPI_ERR_ARG); \
    } while (0)

/* Return MPI_SUCCESS, or the error with which they have called the communicator's error handler. */
int check_send(const struct comm *comm, int count, MPI_Datatype type, int to, int tag);
int check_receive(const struct comm *comm, int count, MPI_Datatype type, int from, int tag);
int check_root(const struct comm *comm, int root);

#endif
