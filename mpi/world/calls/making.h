/* How communicators over sites are made: the site's MPI makes each its part, everybody learns of everybody
 * and whether all have one, and each makes its record. */
#ifndef CAUSEWAY_WORLD_MAKING_H
#define CAUSEWAY_WORLD_MAKING_H

#include "world/handles/comms.h"

/* What a rank says of itself. `number` is its next for communicators, `slot` that of its next, `alive` how
 * many communicators over sites it has. */
struct says {
    int64_t number, color, key, slot, alive;
    /* The site's MPI has made nothing, or there is no slot. */
    int64_t has_failed;
};
/* It goes between processes as so many of MPI's long, which unlike processors understand. */
enum { SAYS_LONGS = sizeof(struct says) / sizeof(long) };

/* Every call that waits and has the site's MPI make something of a communicator begins with it: duplicates
 * that the program has asked for before have their native parts first, in the order of the calls (idup.c),
 * and all of its ranks here meet. */
int making_meet(struct comm *on);

/* Finds the ranks of a group's members in a communicator; MPI_ERR_GROUP where one is not in it. */
int making_ranks(const struct comm *on, int size, const int32_t *numbers, int *ranks);

/* Makes the native group of so many ranks, those that are here. MPICH 4.0.2 dies in MPI_Comm_create_group
 * where the group was made of another communicator's. */
int making_group(const struct comm *on, int size, const int *ranks, MPI_Group *here);

/* Fills in what this rank says, and takes a slot. `status` is what the site's MPI has said of its part. */
struct says making_say(int color, int key, int status);

/* Exchanges that over a communicator; `all` has an entry for each rank. Returns an MPI's code: not
 * MPI_SUCCESS where anybody has failed, and a line says so once at each site. Whatever it returns,
 * making_end is due. */
int making_exchange(struct comm *on, int color, int key, int status, struct says *all);

/* Whether nobody of so many, `numbers` in the world, has failed; a line is told as above. */
int making_judge(const struct says *all, int size, const int32_t *numbers);

/* Lists the ranks of one color, in the order of keys, then of ranks; returns how many. */
int making_members(const struct says *all, int size, int color, int *ranks);

/* Makes the record of a native communicator that has been made here, if some of these processes are far.
 * `ranks` are their ranks in `all`; NULL: all of it. In a task nobody above may make anything of it. */
int making_record(MPI_Comm native, const struct says *all, const int *ranks, int size,
                  const int32_t *numbers);

/* Ends the making: after an error the native part is freed. The slot goes back where no record has it. */
int making_end(int status, int32_t slot, MPI_Comm *made);

/* For a library above this one, which finds it by name: is told of each new communicator that spans sites, in
 * the call that makes it, while all its ranks are there, and whether there are so few that each may have
 * communicators of its own for operations. All ranks are told the same. */
void causeway_world_on_new(void (*made)(MPI_Comm, int are_few));

/* Splits an intracommunicator, with or without others: a negative color makes no communicator here. */
int making_split(struct comm *on, int color, int key, MPI_Comm *made);

#endif
