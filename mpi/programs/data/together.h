/* Calls in which every rank takes part: MPI_Sendrecv, MPI_Sendrecv_replace, and collective operations in
 * which each rank has a datatype of its own for the same words. */
#ifndef CAUSEWAY_DATA_TOGETHER_H
#define CAUSEWAY_DATA_TOGETHER_H

#include "ends.h"

struct together {
    uint64_t seed;
    int most_bytes; /* from each rank to each */
};

/* Makes one such call, and returns how many results were wrong at this rank. All ranks of MPI_COMM_WORLD call
 * it with the same arguments. */
long together_run(const struct together *together, long number);

#endif
