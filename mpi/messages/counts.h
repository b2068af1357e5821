/* How often this process made each call that sends, to which rank and with how many bytes.
 *
 * A row counts what one call sent to one rank of the world, or on communicators of the same size, in messages
 * of 2^k to 2^(k+1) - 1 bytes. So there are at most 65 rows for each call and rank. */
#ifndef CAUSEWAY_COUNTS_H
#define CAUSEWAY_COUNTS_H

#include <stdint.h>

/* The destination is not a single rank of the world. */
enum { NO_RANK = -1 };

struct about {
    int rank, ranks;
    double seconds;
    /* What ended the counting: MPI_Finalize, MPI_Abort or exit. */
    const char *end;
};

/* Counts a call. The string `call` must stay valid. `to` is a rank of the world or NO_RANK; `ranks` is the
 * size of the communicator, or 0 for a single message. */
void counts_add(const char *call, int to, int ranks, int64_t bytes);

/* Writes DIRECTORY/rank-N.csv, completely or not at all. Returns 0 or an errno value: EEXIST if another
 * program has left its counts. */
int counts_write(const char *directory, const struct about *about);

#endif
