/* A hook in the MPI's progress, which runs in every call in which the program waits or asks. */
#ifndef CAUSEWAY_HOOK_H
#define CAUSEWAY_HOOK_H

#include "common/binding/mpi_calls.h"

#include <stdatomic.h>

/* Finds out whether this MPI lets others take part in its progress: Open MPI does, and MPICH since it has
 * MPIX_Async_start. */
int hook_find(void);

/* Has the MPI call `work`, which returns how much it did, while `waits` is not 0; NULL: always. Where the
 * hook is there already it stays as it is; one that has found nothing to do may be gone. Returns an MPI's
 * code. */
int hook_join(int (*work)(void), const atomic_int *waits);
void hook_leave(void);

/* Whether a request is complete, or failed with `status`. May be called inside the hook. */
int hook_completes(MPI_Request *request, MPI_Status *received, int *status);

#endif
