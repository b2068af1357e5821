/* How an operation waits for its messages. The program's own call waits in the MPI. A task (async/task.h)
 * leaves its stack instead. What moves messages does not know how that is done: async/task.c registers it
 * here. */
#ifndef CAUSEWAY_WAITING_H
#define CAUSEWAY_WAITING_H

#include "common/binding/mpi_calls.h"

struct waiting {
    /* Whether the caller is a task. */
    int (*is_beside)(void);
    /* Waits for a request as a task does. */
    int (*wait)(MPI_Request *request, MPI_Status *status);
};

/* Called once. Before, there are no tasks. */
void waiting_use(const struct waiting *waiting);

int waiting_is_beside(void);
/* Waits for a request, as whoever calls may. */
int waiting_for(MPI_Request *request, MPI_Status *status);

#endif
