/* How communicators over sites are made: the site's MPI makes each process's native part, all processes
 * exchange their data and whether they have their part, and each makes its record. */
#ifndef CAUSEWAY_WORLD_MAKING_H
#define CAUSEWAY_WORLD_MAKING_H

#include "world/handles/comms.h"

/* What a rank tells the others. `number` is its next communicator number, `slot` the slot of its new
 * communicator, `alive` the number of communicators over sites that it has. */
struct says {
    int64_t number, color, key, slot, alive;
    /* True if the site's MPI has made nothing, or no slot is free. */
    int64_t has_failed;
};
/* It is sent as this many MPI_LONGs, which unlike processors understand. */
enum { SAYS_LONGS = sizeof(struct says) / sizeof(long) };

/* Every blocking call in which the site's MPI makes something from a communicator begins with this. It waits
 * until duplicates that the program has asked for earlier have their native parts, which are made in the
 * order of the calls (idup.c), and until all of the communicator's ranks at this site have made the call. */
int making_meet(struct comm *on);

/* Finds the ranks of a group's members in a communicator; returns MPI_ERR_GROUP if one is not in it. */
int making_ranks(const struct comm *on, int size, const int32_t *numbers, int *ranks);

/* Makes the native group of those of `size` ranks that are at this site, from the communicator's own group:
 * MPICH 4.0.2 crashes in MPI_Comm_create_group if the group was made from another communicator's. */
int making_group(const struct comm *on, int size, const int *ranks, MPI_Group *here);

/* Fills in this rank's data, and takes a slot. `status` is the error code of the site's MPI for its part. */
struct says making_say(int color, int key, int status);

/* Exchanges this data over a communicator; `all` has an entry for each rank. Returns an MPI error code: not
 * MPI_SUCCESS if any rank has failed, which one process at each site reports in a line. Call making_end
 * whatever it returns. */
int making_exchange(struct comm *on, int color, int key, int status, struct says *all);

/* Whether none of `size` processes, with these numbers in the world, has failed; a failure is reported as
 * above. */
int making_judge(const struct says *all, int size, const int32_t *numbers);

/* Lists the ranks of one color, in the order of keys, then of ranks; returns how many. */
int making_members(const struct says *all, int size, int color, int *ranks);

/* Makes the record of a native communicator that has been made here, if some of these processes are far.
 * `ranks` are their ranks in `all`, or NULL for all of it. In a task, the library above may not make
 * communicators from it. */
int making_record(MPI_Comm native, const struct says *all, const int *ranks, int size,
                  const int32_t *numbers);

/* Ends the making: after an error, frees the native part. Returns the slot if no record has it. */
int making_end(int status, int32_t slot, MPI_Comm *made);

/* For a library above this one, which finds this function by name: `made` is called for each new communicator
 * that spans sites, in the call that makes it, while all its ranks are in that call. `are_few` says whether
 * there are so few communicators that each may have further ones for its operations; it is the same at all
 * ranks. */
void causeway_world_on_new(void (*made)(MPI_Comm, int are_few));

/* Splits an intracommunicator; a negative color makes no communicator here. */
int making_split(struct comm *on, int color, int key, MPI_Comm *made);

#endif
