/* Intercommunicators over sites: their records, and what is made from them. A native intercommunicator is
 * made at each site where both groups have processes; elsewhere the native communicator is that of the local
 * group. */
#ifndef CAUSEWAY_WORLD_INTER_H
#define CAUSEWAY_WORLD_INTER_H

#include "world/handles/comms.h"

/* Takes two of this process's numbers, and returns the first: it is for what both groups share, the next one
 * for what this process's own group has. */
uint64_t inter_take_numbers(void);

/* Makes the record. The `number` of each group is what its `namer` has taken; both groups pass the same
 * values for each. If there is a `lender`, `inside` is borrowed from it. */
int inter_record(MPI_Comm handle, MPI_Comm inside, struct comm *lender, const struct side *local,
                 const struct side *remote);

/* Makes the record of a native duplicate. */
int inter_duplicate(struct comm *on, MPI_Comm made);
/* Makes a new intercommunicator of both groups' processes with the same color; a negative color makes none
 * here. */
int inter_split(struct comm *on, int color, int key, MPI_Comm *made);
/* Merges both groups into one: the group that passes `high` comes second. */
int inter_merge(struct comm *on, int high, MPI_Comm *made);

/* Makes the native communicator of a new intercommunicator: `part` has the local group's processes at this
 * site, in order. If the remote group has some here, too, they make theirs at the same time. */
int inter_make_native(MPI_Comm part, const struct side *remote, MPI_Comm *made);

/* Makes a native communicator of the same processes, without attributes, whose errors are returned.
 * Collective over them. */
int inter_copy_native(MPI_Comm native, MPI_Comm *copy);

#endif
