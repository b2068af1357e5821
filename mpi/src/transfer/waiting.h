/* How an operation waits for its messages. The program's own call waits in the MPI. An operation that goes on
 * beside the program leaves its stack instead; nothing that moves messages knows how: async/task.c says it
 * here. */
#ifndef CAUSEWAY_WAITING_H
#define CAUSEWAY_WAITING_H

#include "binding/mpi_calls.h"

struct waiting {
    /* Whether the caller is an operation that goes on beside the program. */
    int (*is_beside)(void);
    /* Waits for a request as such an operation may. */
    int (*wait)(MPI_Request *request);
};

/* From now on; before, nothing goes on beside the program. */
void waiting_use(const struct waiting *waiting);

int waiting_is_beside(void);
/* Waits for a request as whoever calls may. */
int waiting_for(MPI_Request *request);

#endif
