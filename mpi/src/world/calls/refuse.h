/* What the world library does not do over sites: it says so once for each function, and calls the error
 * handler of the object. */
#ifndef CAUSEWAY_WORLD_REFUSE_H
#define CAUSEWAY_WORLD_REFUSE_H

#include "binding/export.h"
#include "world/handles/comms.h"

/* Returns the error. */
int refuse(MPI_Comm comm, const char *function, int *is_told);

static inline int refuse_is_over_sites(MPI_Comm comm) { return ours.is_on && comm_find(comm) != NULL; }

#endif
