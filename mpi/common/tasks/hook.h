/* A hook in the MPI's progress engine, which runs in every call in which the program waits or tests. */
#ifndef CAUSEWAY_HOOK_H
#define CAUSEWAY_HOOK_H

#include "common/binding/mpi_calls.h"

#include <stdatomic.h>

/* Finds out whether this MPI lets others take part in its progress engine: Open MPI does, and MPICH if it has
 * MPIX_Async_start. */
int hook_find(void);

/* Makes the MPI call `work`, which returns how much it did, while *waits is not 0, or always if `waits` is
 * NULL. A hook that is already there stays as it is; one that found nothing to do may have removed itself.
 * Returns an MPI error code. */
int hook_join(int (*work)(void), const atomic_int *waits);
void hook_leave(void);

/* Whether a request has completed, or has failed with `status`. May be called inside the hook. */
int hook_completes(MPI_Request *request, MPI_Status *received, int *status);

#endif
