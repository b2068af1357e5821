#include "world/handles/comms.h"

#include "world/engine/matching.h"
#include "world/engine/numbers.h"
#include "world/handles/key.h"
#include "world/handles/slots.h"

#include <stdlib.h>
#include <string.h>

struct comm *comm_last;

static struct numbers table;
static uint64_t last_number;

struct comm *comm_search(MPI_Comm handle)
{
    struct comm *comm = numbers_find(&table, KEY(handle));
    if (comm)
        comm_last = comm;
    return comm;
}

uint64_t comm_next_number(void) { return ++last_number; }

uint32_t comms_count(void) { return (uint32_t)table.used; }

static void forget(struct comm *comm)
{
    free(comm->numbers);
    free(comm->slots);
    free(comm);
}

/* A group: the numbers and slots of all ranks, including this process. */
struct list {
    int size;
    const int32_t *numbers, *slots;
};

/* Finds which peers are at this site, and their ranks in `handle`. */
static void place_peers(struct comm *comm)
{
    for (int i = 0; i < comm->peers; i++) {
        int is_here = world_is_here(&ours.world, (uint32_t)comm->peer_numbers[i]);
        comm->native[i] = is_here ? comm->here : FAR;
        if (is_here)
            comm->rank_of[comm->here++] = i;
    }
}

/* If `remote` is NULL, the peers are those of the group itself. */
static struct comm *make(MPI_Comm native, uint64_t context, struct list group, const struct list *remote)
{
    struct list peers = remote ? *remote : group;
    struct comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    comm->numbers = malloc(((size_t)group.size + 3 * (size_t)peers.size) * sizeof *comm->numbers);
    if (!comm->numbers) {
        free(comm);
        return NULL;
    }
    memcpy(comm->numbers, group.numbers, (size_t)group.size * sizeof *comm->numbers);
    comm->peer_numbers = comm->numbers + group.size;
    memcpy(comm->peer_numbers, peers.numbers, (size_t)peers.size * sizeof *comm->numbers);
    comm->native = comm->peer_numbers + peers.size;
    comm->rank_of = comm->native + peers.size;
    comm->handle = comm->carrier = native;
    comm->size = group.size;
    comm->peers = peers.size;
    comm->holders = 1;
    for (int i = 0; i < group.size; i++)
        if (group.numbers[i] == (int32_t)ours.world.me)
            comm->rank = i;
    place_peers(comm);
    comm->channel = (struct channel){
        .context = context, .numbers = comm->peer_numbers, .size = (uint32_t)peers.size, .owner = comm};
    if (engine_channel_open(ours.engine, &comm->channel)) {
        forget(comm);
        return NULL;
    }
    return comm;
}

/* Makes its messages use the hidden communicator, in which native ranks are those of the site. */
static struct comm *hide(struct comm *comm, int32_t slot, const int32_t *slots)
{
    size_t bytes = (size_t)(comm ? comm->peers : 0) * sizeof *slots;
    int32_t *copy = malloc(bytes + 1);
    if (!comm || !copy) {
        free(copy);
        return NULL;
    }
    memcpy(copy, slots, bytes);
    comm->slots = copy;
    comm->slot = slot;
    comm->carrier = ours.hidden;
    for (int i = 0; i < comm->peers; i++)
        if (comm->native[i] != FAR)
            comm->native[i] = comm->peer_numbers[i] - (int32_t)ours.world.first_here;
    return comm;
}

static int32_t own_slot(const struct list *group)
{
    int32_t slot = NO_SLOT;
    for (int i = 0; i < group->size; i++)
        if (group->numbers[i] == (int32_t)ours.world.me)
            slot = group->slots[i];
    return slot;
}

/* World number of the process that names it (24 bits), its count (39), hidden (1): unique without
 * communication. */
static uint64_t context_of(int32_t namer, uint64_t number, int is_hidden)
{
    return (uint64_t)(uint32_t)namer << 40 | number << 1 | (unsigned)is_hidden;
}

struct comm *comm_make(MPI_Comm handle, uint64_t first_number, int size, const int32_t *numbers,
                       const int32_t *slots)
{
    struct list group = {size, numbers, slots};
    struct comm *comm = make(handle, context_of(numbers[0], first_number, 0), group, NULL);
    if (!comm)
        return NULL;
    comm->hidden =
        hide(make(handle, context_of(numbers[0], first_number, 1), group, NULL), own_slot(&group), slots);
    if (!comm->hidden || numbers_add(&table, KEY(handle), comm))
        return NULL;
    return comm;
}

/* The two kinds of an intercommunicator's messages come from different processes, so both have the same
 * slot. */
struct comm *comm_make_inter(const struct inter *of)
{
    struct list group = {of->local.size, of->local.numbers, of->local.slots},
                remote = {of->remote.size, of->remote.numbers, of->remote.slots};
    struct comm *comm = make(of->handle, context_of(of->namer, of->number, 0), group, &remote);
    if (!comm)
        return NULL;
    int32_t slot = own_slot(&group);
    comm->hidden =
        hide(make(of->handle, context_of(of->namer, of->number, 1), group, &remote), slot, of->remote.slots);
    comm->local = hide(make(of->inside, context_of(of->local.namer, of->local.number, 1), group, NULL), slot,
                       of->local.slots);
    if (!comm->hidden || !comm->local || numbers_add(&table, KEY(of->handle), comm))
        return NULL;
    comm->hidden->local = comm->local;
    comm->local->lender = of->lender;
    if (of->lender)
        comm_hold(of->lender);
    return comm;
}

void comm_hold(struct comm *comm) { comm->holders++; }

/* The native communicator is freed with its last user. */
static void release_local(struct comm *local)
{
    struct comm *lender = local->lender;
    MPI_Comm inside = local->handle;
    int is_last = local->holders == 1;
    comm_release(local);
    if (is_last && lender)
        release_local(lender);
    else if (is_last)
        real.Comm_free(&inside);
}

void comm_release(struct comm *comm)
{
    if (--comm->holders > 0)
        return;
    engine_channel_close(ours.engine, &comm->channel);
    if (comm->hidden && comm->local)
        release_local(comm->local);
    if (comm->hidden) {
        int32_t slot = comm->hidden->slot;
        comm_release(comm->hidden);
        slot_give_back(slot);
        real.Comm_free(&comm->handle);
    }
    topology_release(comm->topology);
    forget(comm);
}

int comm_free(struct comm *comm)
{
    numbers_remove(&table, KEY(comm->handle));
    comm_last = NULL;
    comm->is_freed = 1;
    comm_release(comm);
    return MPI_SUCCESS;
}

int comm_error(const struct comm *comm, int code)
{
    if (code != MPI_SUCCESS)
        real.Comm_call_errhandler(comm->handle, code);
    return code;
}
