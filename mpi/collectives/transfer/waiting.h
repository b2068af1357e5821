/* How an operation waits for its messages. A blocking call waits in the MPI; a task (async/task.h) leaves its
 * stack instead. The code that transfers messages does not depend on tasks: async/task.c registers its
 * functions here. */
#ifndef CAUSEWAY_WAITING_H
#define CAUSEWAY_WAITING_H

#include "common/binding/mpi_calls.h"

struct waiting {
    /* Whether the caller is a task. */
    int (*is_beside)(void);
    /* Waits for a request from within a task. */
    int (*wait)(MPI_Request *request, MPI_Status *status);
};

/* Called once. Before that, there are no tasks. */
void waiting_use(const struct waiting *waiting);

int waiting_is_beside(void);
/* Waits for a request in the way that suits the caller. */
int waiting_for(MPI_Request *request, MPI_Status *status);

#endif
