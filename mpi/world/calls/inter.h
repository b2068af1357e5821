/* Intercommunicators over sites: their records, and what is made of them. A native one is made at each site
 * where both groups have processes; elsewhere the native communicator is that of the local group. */
#ifndef CAUSEWAY_WORLD_INTER_H
#define CAUSEWAY_WORLD_INTER_H

#include "world/handles/comms.h"

/* Takes two numbers of this process, and returns the first: one is for what both groups have, the next for
 * what the own group has. */
uint64_t inter_take_numbers(void);

/* Makes the record. `number` of either group is what its `namer` has taken; both groups say the same of each.
 * `inside` is lent where there is a lender. */
int inter_record(MPI_Comm handle, MPI_Comm inside, struct comm *lender, const struct side *local,
                 const struct side *remote);

/* Makes the record of a native duplicate. */
int inter_duplicate(struct comm *on, MPI_Comm made);
/* The two groups' processes of one color make a new one; a negative color makes none here. */
int inter_split(struct comm *on, int color, int key, MPI_Comm *made);
/* Both groups become one: the one that says `high` comes second. */
int inter_merge(struct comm *on, int high, MPI_Comm *made);

/* Makes the native communicator of a new one: `part` has the local group's processes here, in order. Where
 * the remote group has some here too, these make theirs at the same time. */
int inter_make_native(MPI_Comm part, const struct side *remote, MPI_Comm *made);

/* Makes a native communicator of the same processes, without attributes, whose errors are returned. All of
 * them are in the call. */
int inter_copy_native(MPI_Comm native, MPI_Comm *copy);

#endif
