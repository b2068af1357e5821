/* Messages that a matched probe has taken, on a communicator that spans sites. The handle of a far one is a
 * native message without data, from this process to itself. */
#ifndef CAUSEWAY_WORLD_MESSAGES_H
#define CAUSEWAY_WORLD_MESSAGES_H

#include "world/handles/comms.h"

struct message;

/* `far` is NULL for a native message, whose status has a native rank as source. `comm` is NULL for a handle
 * of which only the MPI knows. */
struct taken {
    struct comm *comm;
    struct message *far;
};

/* Makes a handle for a far message. Returns an MPI error code. */
int message_name(struct comm *comm, struct message *far, MPI_Message *name);
/* Records the communicator of a native message. */
int message_note(struct comm *comm, MPI_Message name);
/* Finds the record, and removes it: a message is received once. The caller releases the communicator. */
struct taken message_take(MPI_Message name);

#endif
