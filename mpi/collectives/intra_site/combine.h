/* Combines the results of sites, always in the order of sites, so that every rank and every run gets the same
 * bits. */
#ifndef CAUSEWAY_COMBINE_H
#define CAUSEWAY_COMBINE_H

#include "collectives/topology/hierarchy.h"
#include "collectives/transfer/datatype.h"

/* Combines parts[0] to parts[sites - 1], the results of sites or of the ranks of one site, `count` elements
 * each. Overwrites the last part. The result goes to `into`, which may be one of the parts. */
int combine(void *parts[], int sites, void *into, int count, const struct shape *shape, MPI_Op op);

/* Combines the data of the first `ranks` ranks in the order of ranks. `room` holds it packed, `count`
 * elements for each rank, in the order of on->members. */
int combine_ranks(struct hierarchy *on, const char *room, int ranks, void *into, int count,
                  const struct shape *shape, MPI_Op op);

/* Memory for the sites' results: origin[s] has room for `count` elements of site s. */
struct parts {
    void **origin;
    void **memory;
    int number;
};

/* Allocates a part for each site. `own` is this site's part, and remains the caller's; MADE means that it is
 * allocated, too. (NULL can be a buffer: one at MPI_BOTTOM.) */
#define MADE ((void *)-1)
int parts_make(struct parts *parts, const struct hierarchy *on, int64_t count, const struct shape *shape,
               void *own);
/* Allocates a part for each of `ranks` ranks. */
int parts_make_for(struct parts *parts, int ranks, int64_t count, const struct shape *shape);
void parts_free(struct parts *parts);

#endif
