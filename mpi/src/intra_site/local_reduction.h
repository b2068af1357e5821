/* A reduce-scatter inside a site, begun and ended apart: each of its ranks adds up one piece, which the
 * others send it. Of two one can be on its way while the other is added up. */
#ifndef CAUSEWAY_LOCAL_REDUCTION_H
#define CAUSEWAY_LOCAL_REDUCTION_H

#include "intra_site/combine.h"
#include "transfer/requests.h"

struct local_reduction {
    /* By local rank: what this rank has of what that one adds up, and how many elements. */
    void **pieces;
    int *counts;
    struct parts parts;
    struct requests some;
};

/* For pieces of up to `most` elements. */
int local_reduction_make(struct local_reduction *local, const struct hierarchy *on, int64_t most,
                         const struct shape *shape);
/* Sends and receives; pieces stay as they are up to local_reduction_end. */
int local_reduction_begin(struct local_reduction *local, struct hierarchy *on, const struct shape *shape);
/* Waits, and adds up in the order of ranks. */
int local_reduction_end(struct local_reduction *local, struct hierarchy *on, void *sum,
                        const struct shape *shape, MPI_Op op);
void local_reduction_free(struct local_reduction *local, int status);

#endif
