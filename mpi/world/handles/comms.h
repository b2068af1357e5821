/* Communicators with processes of several sites. Each consists of a native communicator, that of its
 * processes at this site, and a record; a communicator within a site has no record. */
#ifndef CAUSEWAY_WORLD_COMMS_H
#define CAUSEWAY_WORLD_COMMS_H

#include "world/engine/operation.h"
#include "world/handles/ours.h"
#include "world/handles/topology.h"

enum { FAR = -1 };

struct comm {
    MPI_Comm handle;
    /* The communicator for messages within the site: `handle`, or ours.hidden with tags of slots. */
    MPI_Comm carrier;
    struct channel channel;
    /* The group, or the local one of an intercommunicator. By rank: the number in the world. */
    int size, rank;
    int32_t *numbers;
    /* The peers, with which messages are exchanged: the same group, or the remote one. By their rank: the
     * number in the world, and the rank in `handle` or FAR. By native rank, for the `here` peers at this
     * site: their rank. */
    int peers, here;
    int32_t *peer_numbers, *native, *rank_of;
    /* In an intercommunicator, its local group, for messages of operations; otherwise NULL. */
    struct comm *local;
    /* The record of the same processes for messages of collective operations; NULL in that record itself. */
    struct comm *hidden;
    /* In a hidden record, the slots of the peers at this site, by rank, and that of this process; otherwise
     * NULL. */
    int32_t *slots, slot;
    /* A local group may borrow its native communicator from another intercommunicator's, which then lives as
     * long. */
    struct comm *lender;
    /* The number of non-blocking operations that have begun on it. */
    unsigned operations;
    /* The number of non-blocking duplicates that have been asked for, and of those whose native part has been
     * made. */
    unsigned duplicates, duplicated;
    /* NULL if it has none. */
    struct topology *topology;
    /* The reference count: the program's reference and those of pending receives, which need the native
     * communicator. */
    int holders;
    /* Whether the program has freed it. */
    int is_freed;
};

/* Returns NULL for a communicator within a site. */
struct comm *comm_search(MPI_Comm handle);
extern struct comm *comm_last;
static inline struct comm *comm_find(MPI_Comm handle)
{
    return comm_last && comm_last->handle == handle ? comm_last : comm_search(handle);
}

/* Returns a number that this process has not used before: with the process's number in the world, it
 * identifies a communicator. */
uint64_t comm_next_number(void);

/* Makes the record of `handle`. `numbers` and `slots` are copied. `first_number` is the number from the first
 * rank; `slots` are those of the ranks at this site, by rank, including this process's. Returns NULL if
 * memory is exhausted. */
struct comm *comm_make(MPI_Comm handle, uint64_t first_number, int size, const int32_t *numbers,
                       const int32_t *slots);

/* The number of communicators over sites. */
uint32_t comms_count(void);

/* A group of an intercommunicator: its processes and their slots, and the process among them whose number
 * identifies what belongs to the group, with that number. */
struct side {
    int size;
    int32_t *numbers, *slots;
    int32_t namer;
    uint64_t number;
};

/* What an intercommunicator is made from. `handle` is a native intercommunicator of the processes at this
 * site if both groups have some, otherwise a communicator of the local group's; `inside` is a communicator of
 * the local group's, too, that of `lender` if there is one. Both sides know the process that names the
 * intercommunicator, and its number. */
struct inter {
    MPI_Comm handle, inside;
    struct comm *lender;
    struct side local, remote;
    int32_t namer;
    uint64_t number;
};
struct comm *comm_make_inter(const struct inter *of);

void comm_hold(struct comm *comm);
/* Releases a reference. The last release frees the record, and then its native communicators. */
void comm_release(struct comm *comm);
/* Called when the program frees it: its handle is no longer valid. */
int comm_free(struct comm *comm);

/* Calls the communicator's error handler, and returns the code. */
int comm_error(const struct comm *comm, int code);

#endif
