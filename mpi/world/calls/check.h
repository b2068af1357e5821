/* Whether the arguments of a message on a communicator that spans sites are right: the MPI below sees only
 * what stays here. */
#ifndef CAUSEWAY_WORLD_CHECK_H
#define CAUSEWAY_WORLD_CHECK_H

#include "common/binding/export.h"
#include "world/handles/comms.h"

/* Leaves a call on a communicator over sites that has nowhere to put its result. */
#define NEEDS(on, pointer)                        \
    do {                                          \
        if (!(pointer))                           \
            return comm_error((on), MPI_ERR_ARG); \
    } while (0)

/* Return MPI_SUCCESS, or what the communicator's error handler has been called with. */
int check_send(const struct comm *comm, int count, MPI_Datatype type, int to, int tag);
int check_receive(const struct comm *comm, int count, MPI_Datatype type, int from, int tag);
int check_root(const struct comm *comm, int root);

#endif
