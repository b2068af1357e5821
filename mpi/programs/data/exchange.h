/* Messages from one rank to another, sent and received in every way that MPI has. */
#ifndef CAUSEWAY_DATA_EXCHANGE_H
#define CAUSEWAY_DATA_EXCHANGE_H

#include "ends.h"

/* Which part of a run a case belongs to. */
enum part {
    PART_PRODUCT, /* every layout to every layout, with every word */
    PART_LARGE,   /* 1 to 32 MB, around the limits that `causeway run` sets */
    PART_RANDOM,  /* layouts of layouts, any size to 1 MB */
    PART_COUNT
};

/* The number of cases of a part. PART_RANDOM has no limit. */
long exchange_cases(enum part part);

/* Runs cases from `first` on, as many as fit together but at most `count`, and returns how many. Adds to
 * `wrong` how many arrived wrong at this rank. All ranks of MPI_COMM_WORLD call it with the same
 * arguments. */
long exchange_run(enum part part, uint64_t seed, long first, long count, long *wrong);

/* Attach the buffer for buffered sends before the first exchange, and free it after the last one. */
void exchange_begin(void);
void exchange_end(void);

#endif
