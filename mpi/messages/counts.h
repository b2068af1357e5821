/* How often this process made each call that sends, to whom and with how many bytes.
 *
 * A row is what one call gave to one rank of the world, or to a communicator of so many ranks, in messages
 * from 2^k to 2^(k+1) - 1 bytes. So there are at most 65 rows for each call and rank. */
#ifndef CAUSEWAY_COUNTS_H
#define CAUSEWAY_COUNTS_H

#include <stdint.h>

/* What goes to no single rank of the world. */
enum { NO_RANK = -1 };

struct about {
    int rank, ranks;
    double seconds;
    /* What ended the counting: MPI_Finalize, MPI_Abort or exit. */
    const char *end;
};

/* Counts a call of this name, a string that lasts. `to` is a rank of the world or NO_RANK; `ranks` is that of
 * a communicator, or 0 where it is one message. */
void counts_add(const char *call, int to, int ranks, int64_t bytes);

/* Writes DIRECTORY/rank-N.csv, which is there whole or not at all. 0, or the system's error: EEXIST where
 * another program has left its counts. */
int counts_write(const char *directory, const struct about *about);

#endif
