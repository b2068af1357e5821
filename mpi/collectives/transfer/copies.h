/* Messages that are sent from a copy. Where MPICH counts a message as sent a round trip later
 * (binding/delivery.h), nobody waits for that: the kernel has taken the copy, or takes it in this process's
 * next call. */
#ifndef CAUSEWAY_COPIES_H
#define CAUSEWAY_COPIES_H

#include "common/binding/mpi_calls.h"

#include <stdint.h>

/* Larger messages are not copied. */
#define COPIED_BYTES (256 * 1024)
/* All copies together have at most so many bytes. */
#define MAX_COPIED_BYTES (32 << 20)

/* Whether a message of so many bytes to another site should be sent from a copy. */
int copies_are_wanted(int64_t bytes);

/* Sends from a copy. MPI_ERR_NO_MEM means that there is no memory, or that there are too many copies: the
 * message must then be sent as it is. */
int copies_send(MPI_Comm comm, const void *from, int64_t count, MPI_Datatype type, int64_t bytes, int to,
                int tag);

/* Frees the copies whose messages have gone. With `all` it waits for every one. */
void copies_reap(int all);

#endif
