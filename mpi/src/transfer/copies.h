/* Messages that are sent from a copy. Where one counts as sent a round trip later (binding/delivery.h),
 * nobody waits for that: the kernel has taken the copy, or will, in this process's next call. */
#ifndef CAUSEWAY_COPIES_H
#define CAUSEWAY_COPIES_H

#include "binding/mpi_calls.h"

#include <stdint.h>

/* A message of more bytes is not copied. */
#define COPIED_BYTES (256 * 1024)
/* Bytes of all copies. */
#define MAX_COPIED_BYTES (32 << 20)

/* Whether a message of so many bytes to another site should be sent from a copy. */
int copies_are_wanted(int64_t bytes);

/* Sends from a copy; MPI_ERR_NO_MEM when there is none to be had, or are too many, and the message is to be
 * sent as it is. */
int copies_send(MPI_Comm comm, const void *from, int64_t count, MPI_Datatype type, int64_t bytes, int to,
                int tag);

/* Ends what can be ended of messages that nobody waits for any more (`all`: waits for all of them). */
void copies_reap(int all);

#endif
