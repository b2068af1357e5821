/* A reduce-scatter inside a site, in two halves. Each rank adds up one piece, which the others send it. So
 * one can be on its way while another is added up. */
#ifndef CAUSEWAY_LOCAL_REDUCTION_H
#define CAUSEWAY_LOCAL_REDUCTION_H

#include "collectives/intra_site/combine.h"
#include "collectives/transfer/requests.h"

struct local_reduction {
    /* What this rank has of what local rank r adds up: counts[r] elements at pieces[r]. */
    void **pieces;
    int *counts;
    struct parts parts;
    struct requests some;
};

/* Makes room for pieces of up to `most` elements. */
int local_reduction_make(struct local_reduction *local, const struct hierarchy *on, int64_t most,
                         const struct shape *shape);
/* Sends and receives. The pieces must stay as they are until local_reduction_end. */
int local_reduction_begin(struct local_reduction *local, struct hierarchy *on, const struct shape *shape);
/* Waits, and adds this rank's piece up in the order of ranks. */
int local_reduction_end(struct local_reduction *local, struct hierarchy *on, void *sum,
                        const struct shape *shape, MPI_Op op);
void local_reduction_free(struct local_reduction *local, int status);

#endif
