/* A reduce-scatter inside a site, in two halves, so that one reduction can be in transit while another is
 * summed. Each rank sums one piece, which the others send it. */
#ifndef CAUSEWAY_LOCAL_REDUCTION_H
#define CAUSEWAY_LOCAL_REDUCTION_H

#include "collectives/intra_site/combine.h"
#include "collectives/transfer/requests.h"

struct local_reduction {
    /* This rank's values for the piece that local rank r sums: counts[r] elements at pieces[r]. */
    void **pieces;
    int *counts;
    struct parts parts;
    struct requests some;
};

/* Allocates room for pieces of up to `most` elements. */
int local_reduction_make(struct local_reduction *local, const struct hierarchy *on, int64_t most,
                         const struct shape *shape);
/* Starts the sends and receives. The pieces must not change until local_reduction_end. */
int local_reduction_begin(struct local_reduction *local, struct hierarchy *on, const struct shape *shape);
/* Waits for them, and sums this rank's piece in the order of ranks. */
int local_reduction_end(struct local_reduction *local, struct hierarchy *on, void *sum,
                        const struct shape *shape, MPI_Op op);
void local_reduction_free(struct local_reduction *local, int status);

#endif
