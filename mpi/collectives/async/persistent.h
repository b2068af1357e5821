/* Persistent requests of collective operations. */
#ifndef CAUSEWAY_PERSISTENT_H
#define CAUSEWAY_PERSISTENT_H

#include "collectives/async/plan.h"

/* Makes a request that runs the plan each time it is started. */
int persistent_make(const struct plan *plan, MPI_Request *request);

/* True while such requests exist. */
int persistent_any(void);

/* Called before the MPI starts or frees a request. They do nothing if the request was not made here. */
int persistent_start(MPI_Request request);
void persistent_free(MPI_Request request);

/* Frees all, in MPI_Finalize. */
void persistent_end(void);

#endif
