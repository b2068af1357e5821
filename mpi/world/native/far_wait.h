/* Waiting for a far operation in a blocking call: it has no request. */
#ifndef CAUSEWAY_WORLD_FAR_WAIT_H
#define CAUSEWAY_WORLD_FAR_WAIT_H

#include "world/native/far.h"

/* Makes progress until it is done, finishes, and returns the operation's error. */
int far_wait(struct far *far);

#endif
