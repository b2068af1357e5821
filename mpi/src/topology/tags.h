/* Tags of messages on a hierarchy's communicator between sites. */
#ifndef CAUSEWAY_TAGS_H
#define CAUSEWAY_TAGS_H

#include "topology/hierarchy.h"

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
    /* Parts of an allgather are told apart by theirs. */
    TAG_PART = 64,
    MAX_PARTS = 16384
};

/* Tags for the next operation that goes on beside the program, or for all that come of a persistent request,
 * which may wait for other ranks; -1, at all ranks, when there are none left. */
int tags_take(struct hierarchy *on, int is_persistent);
/* Those of a persistent request, for another. */
void tags_return(struct hierarchy *on, int tags);

#endif
