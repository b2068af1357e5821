/* Persistent requests of collective operations. */
#ifndef CAUSEWAY_PERSISTENT_H
#define CAUSEWAY_PERSISTENT_H

#include "async/plan.h"

/* A request that does what was planned each time it is started. */
int persistent_make(const struct plan *plan, MPI_Request *request);

/* Whether there are any. */
int persistent_any(void);

/* Before the program starts, or frees, a request, which may be another. */
int persistent_start(MPI_Request request);
void persistent_free(MPI_Request request);

/* In MPI_Finalize. */
void persistent_end(void);

#endif
