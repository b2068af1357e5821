/* How persistent requests are made. */
#ifndef CAUSEWAY_WORLD_CALLS_PERSISTENT_H
#define CAUSEWAY_WORLD_CALLS_PERSISTENT_H

#include "world/handles/persistent.h"

/* Makes a request that starts the described operation each time it is started; its handles need not be set.
 * Returns MPI_SUCCESS, or the error with which it has called the communicator's error handler. */
int persistent_make(struct persistent made, MPI_Request *request);

#endif
