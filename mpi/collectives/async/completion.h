/* The requests that programs get for operations that go on beside them. Each is a request for an empty
 * message to this process itself. The message is sent when the operation is over, so every call on requests
 * works on it. */
#ifndef CAUSEWAY_COMPLETION_H
#define CAUSEWAY_COMPLETION_H

#include "collectives/topology/hierarchy.h"

/* Makes a completion; fails only without memory. */
int completion_make(int *completion, MPI_Request *request, int is_persistent);

/* Sends the message, which may complete the program's call at once. Where the operation failed the message is
 * longer than the request has room for. The call that completes the request then gives the failure to the
 * communicator's error handler, outside the MPI's progress. */
void completion_send(int completion, struct hierarchy *on, int status);

/* Frees a completion. `request` is one for which nothing will be sent, or NULL. */
void completion_free(int completion, MPI_Request *request);

/* Frees all, in MPI_Finalize. */
void completions_end(void);

#endif
