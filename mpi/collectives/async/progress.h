/* Where tasks are resumed: in the hook of the MPI's progress, or in that of the library that makes one world
 * of sites with MPIs of their own. */
#ifndef CAUSEWAY_PROGRESS_H
#define CAUSEWAY_PROGRESS_H

#include "common/binding/mpi_calls.h"

/* Finds out which it is, and sets the function that resumes tasks, which returns how many. */
void progress_find(int (*work)(void));
int progress_is_there(void);

/* Called for each task that begins, once it is counted. Returns an MPI's code. */
int progress_join(void);
void progress_leave(void);

/* Returns whether a request is complete, or failed with `status`. May be called inside progress. */
int progress_completes(MPI_Request *request, MPI_Status *received, int *status);

#endif
