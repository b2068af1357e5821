/* Adding up what sites found, always in the order of sites, so that every rank and every run gets the same
 * bits. */
#ifndef CAUSEWAY_COMBINE_H
#define CAUSEWAY_COMBINE_H

#include "topology/hierarchy.h"
#include "transfer/datatype.h"

/* parts[s] holds `count` elements that site s (or rank s of a site) found; all are used up. The result is put
 * into `into`, which may be one of them. */
int combine(struct hierarchy *on, void *parts[], int sites, void *into, int count, const struct shape *shape,
            MPI_Op op);

/* The same of the first `ranks` ranks, in their order: packed, `count` elements each, in the order of
 * on->members. */
int combine_ranks(struct hierarchy *on, const char *room, int ranks, void *into, int count,
                  const struct shape *shape, MPI_Op op);

/* Memory for what the sites found, `count` elements each: origin[s] for site s. */
struct parts {
    void **origin;
    void **memory;
    int number;
};

/* `own` is this site's, and not freed; MADE when it is to be made too. (A buffer at NULL is one at
 * MPI_BOTTOM.) */
#define MADE ((void *)-1)
int parts_make(struct parts *parts, const struct hierarchy *on, int64_t count, const struct shape *shape,
               void *own);
/* The same for what so many ranks have. */
int parts_make_for(struct parts *parts, int ranks, int64_t count, const struct shape *shape);
void parts_free(struct parts *parts);

#endif
