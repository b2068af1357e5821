/* Messages that are sent from a copy. If MPICH completes a send only after a round trip (binding/delivery.h),
 * the operation does not wait for that: the kernel has taken the copy, or takes it in this process's next
 * call. */
#ifndef CAUSEWAY_COPIES_H
#define CAUSEWAY_COPIES_H

#include "common/binding/mpi_calls.h"

#include <stdint.h>

/* Larger messages are not copied. */
#define COPIED_BYTES (256 * 1024)
/* While the copies have more bytes than this in total, no more are made. */
#define MAX_COPIED_BYTES (32 << 20)

/* Whether a message of `bytes` bytes to another site should be sent from a copy. */
int copies_are_wanted(int64_t bytes);

/* Sends from a copy. MPI_ERR_NO_MEM means that none was made: memory is exhausted, there are too many copies,
 * or the elements have gaps. The message must then be sent from its buffer. */
int copies_send(MPI_Comm comm, const void *from, int64_t count, MPI_Datatype type, int64_t bytes, int to,
                int tag);

/* Frees the copies whose messages have been sent. With `all`, waits for every one. */
void copies_reap(int all);

#endif
