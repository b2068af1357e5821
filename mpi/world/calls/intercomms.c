/* Intercommunicators: calls that make them from two communicators, merge them, and query them. */
#define _GNU_SOURCE
#include "world/basic/basic.h"
#include "world/calls/check.h"
#include "world/calls/inter.h"
#include "world/calls/making.h"
#include "world/handles/groups.h"
#include "world/handles/slots.h"
#include "world/native/native.h"
#include "world/native/transfer.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Tags of the leaders' messages over the peer communicator: distinct from those of MPI_Comm_create_group
     * and of tasks. */
    FIRST_TAG = 5120,
    TAGS = 1024,
};

EXPORT int MPI_Comm_test_inter(MPI_Comm comm, int *flag)
{
    const struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Comm_test_inter, comm, flag);
    NEEDS(on, flag);
    *flag = on->local != NULL;
    return MPI_SUCCESS;
}
BOTH(Comm_test_inter);

EXPORT int MPI_Comm_remote_size(MPI_Comm comm, int *size)
{
    const struct comm *on = comm_find(comm);
    if (!on)
        OTHER("Comm_remote_size", (MPI_Comm, int *), comm, size);
    NEEDS(on, size);
    if (!on->local)
        return comm_error(on, MPI_ERR_COMM);
    *size = on->peers;
    return MPI_SUCCESS;
}
BOTH(Comm_remote_size);

EXPORT int MPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
    const struct comm *on = comm_find(comm);
    if (!on)
        OTHER("Comm_remote_group", (MPI_Comm, MPI_Group *), comm, group);
    NEEDS(on, group);
    return comm_error(on, on->local ? group_make(on->peers, on->peer_numbers, group) : MPI_ERR_COMM);
}
BOTH(Comm_remote_group);

/* The arguments of MPI_Intercomm_create, and what the call finds out. Ranks of one communicator may run
 * different MPIs, so the data that they exchange contains no MPI's error codes. */
struct creation {
    MPI_Comm comm, peer;
    struct comm *on, *over;
    int leader, remote_leader, tag, rank;
    /* The slot that this process has given to the new communicator. */
    int32_t slot;
    struct side local, remote;
    /* The leader's findings, which it sends to all: whether anything has failed, or some process belongs to
     * no site. */
    struct verdict {
        int64_t number, remote_number, namer, remote_namer, size, has_failed, is_native;
    } verdict;
};

/* All ranks of the local group learn each other's slots. The leader then knows that all have made the
 * call. */
static int gather_slots(struct creation *c)
{
    struct blocks blocks;
    MPI_Datatype number = handle.types[TYPE_INT];
    c->slot = slot_take();
    c->local.slots = malloc((size_t)c->local.size * sizeof c->slot + 1);
    if (!c->local.slots)
        return MPI_ERR_NO_MEM;
    if (!c->on)
        return NATIVE(Allgather, Iallgather, &c->slot, 1, number, c->local.slots, 1, number, c->comm);
    int status = blocks_even(&blocks, c->local.slots, 1, number);
    return TRY(status, basic_allgather(c->on->hidden, &c->slot, 1, number, &blocks));
}

static int have_slots(const struct side *side)
{
    for (int i = 0; i < side->size; i++)
        if (side->slots[i] == NO_SLOT)
            return 0;
    return 1;
}

static int tell_group(struct creation *c, void *buffer, int count, MPI_Datatype type)
{
    return c->on ? basic_bcast(c->on->hidden, buffer, count, type, c->leader)
                 : NATIVE(Bcast, Ibcast, buffer, count, type, c->leader, c->comm);
}

/* Whether some process of a communicator of this site is not in the world: a child, for example. */
static int has_strangers(int size, const int32_t *numbers)
{
    for (int i = 0; i < size; i++)
        if (numbers[i] < 0)
            return 1;
    return 0;
}

static int list_comm(MPI_Comm comm, struct side *side)
{
    MPI_Group group;
    int status = MPI_Comm_group(comm, &group);
    if (status != MPI_SUCCESS)
        return status;
    side->numbers = group_list(group, &side->size);
    if (group != handle.group_empty)
        MPI_Group_free(&group);
    return side->numbers ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Exchanges data with the other leader. Both leaders send before they wait. */
static int trade(struct creation *c, const void *out, int out_count, void *in, int in_count,
                 MPI_Datatype type)
{
    if (!c->over) {
        MPI_Request sends, receives;
        int status = real.Irecv(in, in_count, type, c->remote_leader, c->tag, c->peer, &receives);
        TRY(status, real.Isend(out, out_count, type, c->remote_leader, c->tag, c->peer, &sends));
        TRY(status, progress_wait(&receives, MPI_STATUS_IGNORE));
        return TRY(status, progress_wait(&sends, MPI_STATUS_IGNORE));
    }
    struct transfer sending = {0};
    int tag = FIRST_TAG + c->tag % TAGS;
    int status = transfer_send(&sending, c->over->hidden, out, out_count, type, c->remote_leader, tag);
    TRY(status,
        transfer_receive_now(c->over->hidden, in, in_count, type, c->remote_leader, tag, MPI_STATUS_IGNORE));
    int ended = transfer_wait(&sending, MPI_STATUS_IGNORE);
    return TRY(status, ended);
}

static int peer_has_strangers(const struct creation *c)
{
    struct side peers = {0};
    if (c->over || list_comm(c->peer, &peers) != MPI_SUCCESS)
        return 0;
    int has = has_strangers(peers.size, peers.numbers);
    free(peers.numbers);
    return has;
}

/* Whether numbers are valid that came from another process. */
static int are_right(const struct side *side)
{
    for (int i = 0; i < side->size; i++)
        if (side->numbers[i] < 0 || (uint32_t)side->numbers[i] >= ours.world.size)
            return 0;
    return 1;
}

static int remote_new(struct side *remote)
{
    remote->numbers = malloc((size_t)remote->size * sizeof *remote->numbers);
    remote->slots = malloc((size_t)remote->size * sizeof *remote->slots);
    return remote->numbers && remote->slots ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* At the leader: learns the members of the remote group. */
static int learn(struct creation *c)
{
    struct {
        int64_t number, size, namer;
    } own = {c->verdict.number, c->local.size, ours.world.me}, their = {0, 0, 0};
    enum { LONGS = sizeof own / sizeof(long) };
    int status = trade(c, &own, LONGS, &their, LONGS, handle.types[TYPE_LONG]);
    if (status == MPI_SUCCESS && (their.size <= 0 || their.size > ours.world.size || their.namer < 0 ||
                                  their.namer >= ours.world.size))
        status = MPI_ERR_OTHER;
    if (status != MPI_SUCCESS)
        return status;
    c->verdict.remote_number = their.number;
    c->verdict.namer = own.namer;
    c->verdict.remote_namer = their.namer;
    c->verdict.size = c->remote.size = (int)their.size;
    status = remote_new(&c->remote);
    MPI_Datatype number = handle.types[TYPE_INT];
    TRY(status, trade(c, c->local.numbers, c->local.size, c->remote.numbers, c->remote.size, number));
    TRY(status, trade(c, c->local.slots, c->local.size, c->remote.slots, c->remote.size, number));
    int are_good =
        status == MPI_SUCCESS && are_right(&c->remote) && have_slots(&c->local) && have_slots(&c->remote);
    return status == MPI_SUCCESS && !are_good ? MPI_ERR_OTHER : status;
}

static int check_leader(const struct creation *c)
{
    int peers = 0;
    if (c->over)
        peers = c->over->peers;
    else if (c->peer == handle.comm_null || real.Comm_size(c->peer, &peers) != MPI_SUCCESS)
        return MPI_ERR_COMM;
    return c->remote_leader >= 0 && c->remote_leader < peers ? MPI_SUCCESS : MPI_ERR_RANK;
}

/* All ranks of both groups have then made the call: each leader answers only when its whole group has. */
static int agree(struct creation *c)
{
    int status = gather_slots(c);
    c->verdict.number = (int64_t)inter_take_numbers();
    if (c->rank == c->leader) {
        int found = status;
        TRY(found, check_leader(c));
        c->verdict.is_native = found == MPI_SUCCESS && peer_has_strangers(c);
        if (!c->verdict.is_native)
            TRY(found, learn(c));
        c->verdict.has_failed = found != MPI_SUCCESS;
    }
    TRY(status, tell_group(c, &c->verdict, (int)(sizeof c->verdict / sizeof(long)), handle.types[TYPE_LONG]));
    if (status != MPI_SUCCESS || c->verdict.has_failed || c->verdict.is_native)
        return c->verdict.has_failed && status == MPI_SUCCESS ? MPI_ERR_OTHER : status;
    if (c->rank != c->leader) {
        c->remote.size = (int)c->verdict.size;
        status = remote_new(&c->remote);
    }
    TRY(status, tell_group(c, c->remote.numbers, c->remote.size, handle.types[TYPE_INT]));
    TRY(status, tell_group(c, c->remote.slots, c->remote.size, handle.types[TYPE_INT]));
    c->local.namer = (int32_t)c->verdict.namer;
    c->local.number = (uint64_t)c->verdict.number;
    c->remote.namer = (int32_t)c->verdict.remote_namer;
    c->remote.number = (uint64_t)c->verdict.remote_number;
    return status;
}

/* Both groups are within the site. The peer communicator may span sites. */
static int create_within(const struct creation *c, MPI_Comm *made)
{
    static int (*own)(MPI_Comm, int, MPI_Comm, int, int, MPI_Comm *);
    int remote_leader = c->remote_leader;
    if (!own)
        own = (int (*)(MPI_Comm, int, MPI_Comm, int, int, MPI_Comm *))mpi_calls_find("Intercomm_create");
    if (c->over && c->rank == c->leader)
        remote_leader = c->over->native[remote_leader];
    return own ? own(c->comm, c->leader, c->peer, remote_leader, c->tag, made) : NO_MPI;
}

static int create_over(const struct creation *c, MPI_Comm *made)
{
    MPI_Comm inside;
    MPI_Errhandler errors;
    int status = c->on ? making_meet(c->on) : MPI_SUCCESS;
    TRY(status, inter_make_native(c->comm, &c->remote, made));
    TRY(status, inter_copy_native(c->comm, &inside));
    TRY(status, real.Comm_get_errhandler(c->comm, &errors));
    TRY(status, real.Comm_set_errhandler(*made, errors));
    TRY(status, real.Errhandler_free(&errors));
    return TRY(status, inter_record(*made, inside, NULL, &c->local, &c->remote));
}

static int create(struct creation *c, MPI_Comm *made)
{
    int status = agree(c);
    if (status != MPI_SUCCESS)
        return status;
    if (c->verdict.is_native)
        return create_within(c, made);
    int are_here = 1;
    for (int i = 0; i < c->local.size; i++)
        are_here = are_here && world_is_here(&ours.world, (uint32_t)c->local.numbers[i]);
    for (int i = 0; i < c->remote.size; i++)
        are_here = are_here && world_is_here(&ours.world, (uint32_t)c->remote.numbers[i]);
    return are_here ? create_within(c, made) : create_over(c, made);
}

EXPORT int MPI_Intercomm_create(MPI_Comm comm, int leader, MPI_Comm peer, int remote_leader, int tag,
                                MPI_Comm *made)
{
    struct creation c = {.comm = comm, .peer = peer, .leader = leader, .remote_leader = remote_leader};
    int size = 0;
    c.slot = NO_SLOT;
    c.tag = tag;
    if (!ours.is_on || comm == handle.comm_null)
        OTHER("Intercomm_create", (MPI_Comm, int, MPI_Comm, int, int, MPI_Comm *), comm, leader, peer,
              remote_leader, tag, made);
    c.on = comm_find(comm);
    if (!made) {
        real.Comm_call_errhandler(comm, MPI_ERR_ARG);
        return MPI_ERR_ARG;
    }
    *made = handle.comm_null;
    int status = MPI_Comm_size(comm, &size);
    TRY(status, MPI_Comm_rank(comm, &c.rank));
    if (status == MPI_SUCCESS && (leader < 0 || leader >= size || (c.on && c.on->local)))
        status = c.on && c.on->local ? MPI_ERR_COMM : MPI_ERR_RANK;
    if (status == MPI_SUCCESS && (tag < 0 || (uint32_t)tag > ours.world.tag_ub))
        status = MPI_ERR_TAG;
    if (c.rank == leader && peer != handle.comm_null)
        c.over = comm_find(peer);
    TRY(status, list_comm(comm, &c.local));
    if (status == MPI_SUCCESS)
        status = has_strangers(c.local.size, c.local.numbers) ? create_within(&c, made) : create(&c, made);
    making_end(status, c.slot, made);
    free(c.local.numbers), free(c.local.slots);
    free(c.remote.numbers), free(c.remote.slots);
    if (status != MPI_SUCCESS)
        real.Comm_call_errhandler(comm, status);
    return status;
}
BOTH(Intercomm_create);

EXPORT int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on) {
        if (ours.is_on && comm != handle.comm_null)
            native_meet(comm);
        OTHER("Intercomm_merge", (MPI_Comm, int, MPI_Comm *), comm, high, made);
    }
    NEEDS(on, made);
    return comm_error(on, on->local ? inter_merge(on, high, made) : MPI_ERR_COMM);
}
BOTH(Intercomm_merge);
