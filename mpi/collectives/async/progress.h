/* A hook in the MPI's progress, which runs in every call in which the program waits or asks. */
#ifndef CAUSEWAY_PROGRESS_H
#define CAUSEWAY_PROGRESS_H

#include "common/binding/mpi_calls.h"

#include <stdatomic.h>

/* Sets the function that the hook calls. It returns how much it did. */
void progress_use(int (*work)(void));

/* Finds out whether this MPI lets others take part in its progress: Open MPI does, and MPICH since it has
 * MPIX_Async_start. */
void progress_find(void);
int progress_is_there(void);

/* How many users have something to do. A user raises it before progress_join, because a hook that finds none
 * goes. */
extern atomic_int progress_users;

int progress_join(void);
void progress_leave(void);

/* Returns whether a request is complete, or failed with `status`. May be called inside progress. */
int progress_completes(MPI_Request *request, MPI_Status *received, int *status);

#endif
