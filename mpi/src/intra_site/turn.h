/* Adding up inside a site: in a turn each of its ranks adds up one piece, which the others send it. Of two turns one can be on its way
 * while the other is added up. */
#ifndef CAUSEWAY_TURN_H
#define CAUSEWAY_TURN_H

#include "intra_site/combine.h"

struct turn {
    /* By local rank: what this rank has of what that one adds up, and how many elements. */
    void **pieces;
    int *counts;
    struct parts parts;
    struct requests some;
};

/* For pieces of up to `most` elements. */
int turn_make(struct turn *turn, const struct hierarchy *on, int64_t most, const struct shape *shape);
/* Sends and receives; pieces stay as they are up to turn_end. */
int turn_begin(struct turn *turn, struct hierarchy *on, const struct shape *shape);
/* Waits, and adds up in the order of ranks. */
int turn_end(struct turn *turn, struct hierarchy *on, void *sum, const struct shape *shape, MPI_Op op);
void turn_free(struct turn *turn, int status);

#endif
