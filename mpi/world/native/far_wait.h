/* Waiting for a far operation in a blocking call, where it has no request. */
#ifndef CAUSEWAY_WORLD_FAR_WAIT_H
#define CAUSEWAY_WORLD_FAR_WAIT_H

#include "world/native/far.h"

/* Makes progress until the operation is done, finishes it, and returns its error. */
int far_wait(struct far *far);

#endif
