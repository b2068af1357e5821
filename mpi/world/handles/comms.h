/* Communicators with processes of several sites. Such a one is a native communicator, that of its processes
 * here, and a record; one within a site has none. */
#ifndef CAUSEWAY_WORLD_COMMS_H
#define CAUSEWAY_WORLD_COMMS_H

#include "world/engine/operation.h"
#include "world/handles/ours.h"
#include "world/handles/topology.h"

enum { FAR = -1 };

struct comm {
    MPI_Comm handle;
    /* Messages within the site go over this: `handle`, or ours.hidden with tags of slots. */
    MPI_Comm carrier;
    struct channel channel;
    /* The group; of an intercommunicator the local one. By rank: the number in the world. */
    int size, rank;
    int32_t *numbers;
    /* The peers, whom messages go to and come from: the same, or the remote group. By their rank: the number
     * in the world, and the rank in `handle` or FAR. By native rank, `here` of them: their rank. */
    int peers, here;
    int32_t *peer_numbers, *native, *rank_of;
    /* An intercommunicator's: its local group, for messages of operations. NULL in all others. */
    struct comm *local;
    /* The same processes, for messages of collective operations; NULL in that itself. */
    struct comm *hidden;
    /* A hidden one's: the slots of the peers here, by rank, and that of this process. NULL in all others. */
    int32_t *slots, slot;
    /* A local group's native communicator may be that of another intercommunicator, which lives as long. */
    struct comm *lender;
    /* How many operations that do not wait have begun on it. */
    unsigned operations;
    /* How many duplicates that do not wait have been asked for, and of how many the native part is there. */
    unsigned duplicates, duplicated;
    /* NULL where it has none. */
    struct topology *topology;
    /* The program, and each receive that is pending: they need the native communicator. */
    int holders;
    /* The program has freed it. */
    int is_freed;
};

/* NULL for what is within a site. */
struct comm *comm_search(MPI_Comm handle);
extern struct comm *comm_last;
static inline struct comm *comm_find(MPI_Comm handle)
{
    return comm_last && comm_last->handle == handle ? comm_last : comm_search(handle);
}

/* A number that this process has not given before: with its place in the world it names a communicator. */
uint64_t comm_next_number(void);

/* Makes the record of `handle`. `numbers` and `slots` are copied. `first_number` is what the first rank gave;
 * `slots` are those of the ranks here, by rank, this process's too. NULL where there is no memory. */
struct comm *comm_make(MPI_Comm handle, uint64_t first_number, int size, const int32_t *numbers,
                       const int32_t *slots);

/* How many there are. */
uint32_t comms_count(void);

/* A group of an intercommunicator: its processes and their slots, and the one of them that names what the
 * group has, with a number of its own. */
struct side {
    int size;
    int32_t *numbers, *slots;
    int32_t namer;
    uint64_t number;
};

/* What an intercommunicator is made of. `handle` is a native intercommunicator of the processes here where
 * both groups have some, and else a communicator of the local group's; `inside` is one of these, too, and
 * that of `lender` where there is one. Both sides know the process that names it, and its number. */
struct inter {
    MPI_Comm handle, inside;
    struct comm *lender;
    struct side local, remote;
    int32_t namer;
    uint64_t number;
};
struct comm *comm_make_inter(const struct inter *of);

void comm_hold(struct comm *comm);
/* Lets go. The last one frees it, and then its native communicators. */
void comm_release(struct comm *comm);
/* The program frees it: its handle names nothing any more. */
int comm_free(struct comm *comm);

/* Calls the communicator's error handler, and returns the code. */
int comm_error(const struct comm *comm, int code);

#endif
