/* How communicators over sites are made: everybody learns of everybody, and each makes its own part. */
#ifndef CAUSEWAY_WORLD_MAKING_H
#define CAUSEWAY_WORLD_MAKING_H

#include "world/handles/comms.h"

/* What a rank says of itself. `number` is its next for communicators. */
struct says {
    int32_t color, key;
    uint64_t number;
};

/* Exchanges that over a communicator; `all` has an entry for each rank. Returns an MPI's code. */
int making_exchange(struct comm *on, int color, int key, struct says *all);

/* Lists the ranks of one color, in the order of keys, then of ranks; returns how many. */
int making_members(const struct says *all, int size, int color, int *ranks);

/* Makes the record of a native communicator that has been made here, if some of these processes are far.
 * `number` is what the first of them said. */
int making_record(MPI_Comm native, uint64_t number, int size, const int32_t *numbers);

/* For a library above this one, which finds it by name: is told of each new communicator that spans sites, in
 * the call that makes it, while all its ranks are there. */
void causeway_world_on_new(void (*made)(MPI_Comm));

/* Splits, with or without others: a negative color makes no communicator here. */
int making_split(struct comm *on, int color, int key, MPI_Comm *made);

#endif
