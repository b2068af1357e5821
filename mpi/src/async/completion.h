/* Requests that programs get for operations that go on beside them: each is that of an empty message to this
 * process itself, which is sent when the operation is over, so that every call on requests knows it. */
#ifndef CAUSEWAY_COMPLETION_H
#define CAUSEWAY_COMPLETION_H

#include "topology/hierarchy.h"

/* As many as there is memory for. */
int completion_make(int *completion, MPI_Request *request, int is_persistent);

/* Sends the message, which may complete the program's call at once. One of an operation that failed is longer
 * than the request has room for: the call that completes the request then gives the failure to the
 * communicator's error handler, outside the MPI's progress. */
void completion_send(int completion, struct hierarchy *on, int status);

/* `request`: one for which nothing will be sent, or NULL. */
void completion_free(int completion, MPI_Request *request);

/* In MPI_Finalize. */
void completions_end(void);

#endif
