/* Messages that a matched probe has taken, on a communicator that spans sites. A far one is named by a native
 * message without data, from this process to itself. */
#ifndef CAUSEWAY_WORLD_MESSAGES_H
#define CAUSEWAY_WORLD_MESSAGES_H

#include "world/handles/comms.h"

struct message;

/* `far` is NULL for a native message: its status names a native rank. `comm` is NULL where the handle means
 * no more than the MPI knows. */
struct taken {
    struct comm *comm;
    struct message *far;
};

/* Names a far message. Returns an MPI's code. */
int message_name(struct comm *comm, struct message *far, MPI_Message *name);
/* Notes whose communicator a native one is of. */
int message_note(struct comm *comm, MPI_Message name);
/* Finds it, and forgets it: a message is received once. The caller lets go of the communicator. */
struct taken message_take(MPI_Message name);

#endif
