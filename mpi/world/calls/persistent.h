/* How persistent requests are made. */
#ifndef CAUSEWAY_WORLD_CALLS_PERSISTENT_H
#define CAUSEWAY_WORLD_CALLS_PERSISTENT_H

#include "world/handles/persistent.h"

/* Makes a request that does what is described each time it is started; its handles need not be set. Returns
 * MPI_SUCCESS, or what the communicator's error handler has been called with. */
int persistent_make(struct persistent made, MPI_Request *request);

#endif
