/* Calls in which every rank takes part: MPI_Sendrecv, MPI_Sendrecv_replace, and collective operations whose
 * ranks each have a datatype of their own for the same words. */
#ifndef CAUSEWAY_DATA_TOGETHER_H
#define CAUSEWAY_DATA_TOGETHER_H

#include "ends.h"

struct together {
    uint64_t seed;
    int most_bytes; /* from each rank to each */
};

/* Does one such call, and returns how much was wrong here. All ranks of MPI_COMM_WORLD call it alike. */
long together_run(const struct together *together, long number);

#endif
