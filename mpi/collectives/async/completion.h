/* The requests that programs get for operations that run in the background. Each is a receive request for an
 * empty message from this process to itself, sent when the operation is complete. So every call on requests
 * works on it. */
#ifndef CAUSEWAY_COMPLETION_H
#define CAUSEWAY_COMPLETION_H

#include "collectives/topology/hierarchy.h"

/* Makes a completion; fails only if memory is exhausted. */
int completion_make(int *completion, MPI_Request *request, int is_persistent);

/* Sends the message, which may complete the program's call at once. If the operation failed, the message is
 * longer than the request has room for; the call that completes the request then passes the failure to the
 * communicator's error handler, outside the MPI's progress engine. */
void completion_send(int completion, struct hierarchy *on, int status);

/* Frees a completion. `request` is its request if no message will be sent for it, otherwise NULL. */
void completion_free(int completion, MPI_Request *request);

/* Frees all, in MPI_Finalize. */
void completions_end(void);

#endif
