/* Adds up what sites found, always in the order of sites, so that every rank and every run gets the same
 * bits. */
#ifndef CAUSEWAY_COMBINE_H
#define CAUSEWAY_COMBINE_H

#include "collectives/topology/hierarchy.h"
#include "collectives/transfer/datatype.h"

/* Adds up the `count` elements in each of parts[0] to parts[sites - 1], which sites, or the ranks of one
 * site, found. All are used up. The result goes to `into`, which may be one of them. */
int combine(void *parts[], int sites, void *into, int count, const struct shape *shape, MPI_Op op);

/* Adds up what the first `ranks` ranks have, in the order of ranks. It lies packed in `room`, `count`
 * elements each, in the order of on->members. */
int combine_ranks(struct hierarchy *on, const char *room, int ranks, void *into, int count,
                  const struct shape *shape, MPI_Op op);

/* Memory for what the sites found: origin[s] has room for `count` elements of site s. */
struct parts {
    void **origin;
    void **memory;
    int number;
};

/* Makes room for each site's part. `own` is this site's, and stays the caller's; MADE means that it is made
 * too. (NULL may be a buffer: one at MPI_BOTTOM.) */
#define MADE ((void *)-1)
int parts_make(struct parts *parts, const struct hierarchy *on, int64_t count, const struct shape *shape,
               void *own);
/* Makes room for what each of so many ranks has. */
int parts_make_for(struct parts *parts, int ranks, int64_t count, const struct shape *shape);
void parts_free(struct parts *parts);

#endif
