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
    /* How many operations that do not wait have begun on it. */
    unsigned operations;
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

/* Makes the record of `handle`. `numbers` are copied. `first_number` is what the first rank gave, and
 * `hidden` a native communicator of the same processes. NULL where there is no memory. */
struct comm *comm_make(MPI_Comm handle, MPI_Comm hidden, uint64_t first_number, int size,
                       const int32_t *numbers);

/* A group of an intercommunicator: its processes, and the one of them that names what the group has, with a
 * number of its own. */
struct side {
    int size;
    int32_t *numbers;
    int32_t namer;
    uint64_t number;
};

/* What an intercommunicator is made of. `handle` and `hidden` are native intercommunicators of the processes
 * here where both groups have some, and else communicators of the local group's; `inside` is one of these,
 * too. Both sides know the process that names it, and its number. */
struct inter {
    MPI_Comm handle, hidden, inside;
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
