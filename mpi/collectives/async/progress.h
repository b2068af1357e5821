/* Where tasks are resumed: in a hook of the MPI's progress engine, or in that of the world library, which
 * joins sites that run their own MPIs. */
#ifndef CAUSEWAY_PROGRESS_H
#define CAUSEWAY_PROGRESS_H

#include "common/binding/mpi_calls.h"

/* Finds out which of the two exists, and sets the function that resumes tasks and returns how many it
 * resumed. */
void progress_find(int (*work)(void));
int progress_is_there(void);

/* Called for each task that begins, after it has been counted. Returns an MPI error code. */
int progress_join(void);
void progress_leave(void);

/* Returns whether a request has completed, or has failed with `status`. May be called inside the progress
 * engine. */
int progress_completes(MPI_Request *request, MPI_Status *received, int *status);

#endif
