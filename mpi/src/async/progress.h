/* Taking part in the MPI's progress: what is called in every call in which the program waits or asks. */
#ifndef CAUSEWAY_PROGRESS_H
#define CAUSEWAY_PROGRESS_H

#include "binding/mpi_calls.h"

#include <stdatomic.h>

/* What is called, which says how much it did. */
void progress_use(int (*work)(void));

/* Looks whether this MPI lets others take part: Open MPI does, and MPICH since it has MPIX_Async_start. */
void progress_find(void);
int progress_is_there(void);

/* How many have something to do. It is raised before progress_join: a hook that finds none goes. */
extern atomic_int progress_users;

int progress_join(void);
void progress_leave(void);

/* Whether a request is complete, or failed; it may be asked inside progress. */
int progress_completes(MPI_Request *request, int *status);

#endif
