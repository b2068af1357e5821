/* The tags of messages on a hierarchy's `across` communicator. */
#ifndef CAUSEWAY_TAGS_H
#define CAUSEWAY_TAGS_H

#include "collectives/topology/hierarchy.h"

enum tag {
    TAG_BARRIER = 1,
    TAG_BCAST,
    TAG_REDUCE,
    TAG_ALLREDUCE,
    TAG_GATHER,
    TAG_SCATTER,
    TAG_ALLGATHER,
    TAG_ALLTOALL,
    TAG_SCAN,
    TAG_REDUCE_SCATTER,
    TAG_INTRA_SITE,
    TAG_HANDED,
    /* Each part of an allgather has a tag of its own. */
    TAG_PART = 64,
    MAX_PARTS = 16384
};

/* Takes tags for the next background operation, or for all operations of a persistent request; the latter may
 * wait for other ranks. Returns -1, at all ranks, if none are left. */
int tags_take(struct hierarchy *on, int is_persistent);
/* Returns the tags of a persistent request. */
void tags_return(struct hierarchy *on, int tags);

#endif
