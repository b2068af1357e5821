#include "world/calls/inter.h"

#include "common/binding/export.h"
#include "world/basic/basic.h"
#include "world/calls/making.h"
#include "world/native/native.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* For messages between processes of this site, on a communicator of this library. */
    MEET_TAG = 1,
};

uint64_t inter_take_numbers(void)
{
    uint64_t number = comm_next_number();
    comm_next_number();
    return number;
}

/* Both groups determine alike which of them names what they share: the one whose namer has the lower number
 * in the world. */
int inter_record(MPI_Comm handle, MPI_Comm inside, struct comm *lender, const struct side *local,
                 const struct side *remote)
{
    const struct side *first = local->namer < remote->namer ? local : remote;
    struct inter of = {.handle = handle,
                       .inside = inside,
                       .lender = lender,
                       .local = *local,
                       .remote = *remote,
                       .namer = first->namer,
                       .number = first->number};
    of.local.number++;
    of.remote.number++;
    return comm_make_inter(&of) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int inter_copy_native(MPI_Comm native, MPI_Comm *copy)
{
    MPI_Group group;
    int is_inter = 0;
    int status = real.Comm_test_inter(native, &is_inter);
    /* A hidden intercommunicator has no attributes that a duplicate would copy; Comm_create copies none. */
    TRY(status, real.Comm_group(native, &group));
    if (status != MPI_SUCCESS)
        return status;
    status = is_inter ? real.Comm_dup(native, copy) : real.Comm_create(native, group, copy);
    real.Group_free(&group);
    TRY(status, real.Comm_set_errhandler(*copy, handle.errors_return));
    return status;
}

static int32_t first_here(const struct side *side)
{
    for (int i = 0; i < side->size; i++)
        if (world_is_here(&ours.world, (uint32_t)side->numbers[i]))
            return side->numbers[i] - (int32_t)ours.world.first_here;
    return -1;
}

/* Both groups' processes at this site wait for each other, making progress, before a native call that
 * blocks. */
static int meet_other(MPI_Comm part, int other)
{
    MPI_Request sends, comes;
    char out = 0, in;
    int rank, status = native_meet(part);
    TRY(status, real.Comm_rank(part, &rank));
    if (status == MPI_SUCCESS && rank == 0) {
        status = real.Irecv(&in, 1, handle.byte, other, MEET_TAG, ours.site, &comes);
        TRY(status, real.Isend(&out, 1, handle.byte, other, MEET_TAG, ours.site, &sends));
        TRY(status, progress_wait(&comes, MPI_STATUS_IGNORE));
        TRY(status, progress_wait(&sends, MPI_STATUS_IGNORE));
    }
    return TRY(status, native_meet(part));
}

int inter_make_native(MPI_Comm part, const struct side *remote, MPI_Comm *made)
{
    static int (*own)(MPI_Comm, int, MPI_Comm, int, int, MPI_Comm *);
    int other = first_here(remote);
    if (!own)
        own = (int (*)(MPI_Comm, int, MPI_Comm, int, int, MPI_Comm *))mpi_calls_find("Intercomm_create");
    int status = other >= 0 ? meet_other(part, other) : native_meet(part);
    if (other >= 0)
        return TRY(status, own ? own(part, 0, ours.site, other, MEET_TAG, made) : NO_MPI);
    return TRY(status, inter_copy_native(part, made));
}

/* One group of a split: the data from all its ranks, the ranks with this color, and the new group. */
struct half {
    struct says *all;
    int *ranks;
    struct side side;
    int are_here;
};

static int half_new(struct half *half, int size)
{
    size_t each = (size_t)size;
    half->all = malloc(each * sizeof *half->all);
    half->ranks = malloc(each * sizeof *half->ranks);
    half->side.numbers = malloc(each * sizeof *half->side.numbers);
    half->side.slots = malloc(each * sizeof *half->side.slots);
    return half->all && half->ranks && half->side.numbers && half->side.slots ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void half_free(struct half *half)
{
    free(half->all);
    free(half->ranks);
    free(half->side.numbers);
    free(half->side.slots);
}

static void choose(struct half *half, int size, const int32_t *numbers, int color)
{
    struct side *side = &half->side;
    side->size = color < 0 ? 0 : making_members(half->all, size, color, half->ranks);
    for (int i = 0; i < side->size; i++) {
        side->numbers[i] = numbers[half->ranks[i]];
        side->slots[i] = half->all[half->ranks[i]].slot;
        half->are_here += world_is_here(&ours.world, (uint32_t)side->numbers[i]);
    }
    if (side->size) {
        side->namer = side->numbers[0];
        side->number = half->all[half->ranks[0]].number;
    }
}

/* Sends each rank's color, key, numbers and slot to both groups. */
static int exchange(struct comm *on, int color, int key, struct half *local, struct half *remote)
{
    struct says mine = making_say(color, key, MPI_SUCCESS);
    struct blocks ours_in, theirs_in;
    MPI_Datatype number = handle.types[TYPE_LONG];
    mine.number = (int64_t)inter_take_numbers();
    int status = blocks_even(&ours_in, local->all, SAYS_LONGS, number);
    TRY(status, blocks_even(&theirs_in, remote->all, SAYS_LONGS, number));
    TRY(status, basic_allgather(on->local, &mine, SAYS_LONGS, number, &ours_in));
    TRY(status, basic_allgather(on->hidden, &mine, SAYS_LONGS, number, &theirs_in));
    local->all[on->rank] = mine;
    if (status == MPI_SUCCESS && (!making_judge(local->all, on->size, on->numbers) ||
                                  !making_judge(remote->all, on->peers, on->peer_numbers)))
        status = MPI_ERR_OTHER;
    return status;
}

/* Exchanges the data between both groups, and selects the ranks of one color. */
static int split_halves(struct comm *on, int color, int key, struct half *local, struct half *remote)
{
    int status = half_new(local, on->size);
    TRY(status, half_new(remote, on->peers));
    if (status != MPI_SUCCESS)
        return status;
    status = exchange(on, color, key, local, remote);
    if (status == MPI_SUCCESS) {
        choose(local, on->size, on->numbers, color);
        choose(remote, on->peers, on->peer_numbers, color);
    }
    return status;
}

/* A duplicate is like a split with one color whose native part already exists. The original lends it the
 * local group's communicator. */
int inter_duplicate(struct comm *on, MPI_Comm made)
{
    struct half local = {0}, remote = {0};
    int status = split_halves(on, 0, 0, &local, &remote);
    TRY(status, inter_record(made, on->local->handle, on->local, &local.side, &remote.side));
    if (local.all)
        making_end(status, local.all[on->rank].slot, &made);
    half_free(&local);
    half_free(&remote);
    return status;
}

/* Makes a new native intercommunicator: one that MPICH 4.0.2 splits from another loses messages if the first
 * rank of a group is in no part. */
static int make_split(struct comm *on, int color, const struct half *local, const struct half *remote,
                      MPI_Comm *made)
{
    MPI_Comm inside = handle.comm_null;
    MPI_Errhandler errors;
    int order = 0;
    while (order < local->side.size && local->side.numbers[order] != (int32_t)ours.world.me)
        order++;
    int is_one = remote->side.size > 0, status = native_meet(on->local->handle);
    *made = handle.comm_null;
    TRY(status, real.Comm_split(on->local->handle, is_one ? color : MPI_UNDEFINED, order, &inside));
    if (!is_one || status != MPI_SUCCESS)
        return status;
    status = inter_make_native(inside, &remote->side, made);
    if (status != MPI_SUCCESS)
        return status;
    if (local->are_here == local->side.size && remote->are_here == remote->side.size)
        return real.Comm_free(&inside);
    TRY(status, real.Comm_set_errhandler(inside, handle.errors_return));
    TRY(status, real.Comm_get_errhandler(on->handle, &errors));
    TRY(status, real.Comm_set_errhandler(*made, errors));
    TRY(status, real.Errhandler_free(&errors));
    return TRY(status, inter_record(*made, inside, NULL, &local->side, &remote->side));
}

int inter_split(struct comm *on, int color, int key, MPI_Comm *made)
{
    struct half local = {0}, remote = {0};
    *made = handle.comm_null;
    int status = split_halves(on, color, key, &local, &remote);
    TRY(status, make_split(on, color, &local, &remote, made));
    if (local.all)
        making_end(status, local.all[on->rank].slot, made);
    half_free(&local);
    half_free(&remote);
    return status;
}

/* The ranks of the lower group come first; if both groups pass the same `high`, those of the group whose
 * first rank has the lower number in the world. `all` has room for both. */
static int merge(struct comm *on, const struct half *local, const struct half *remote, struct says *all,
                 int32_t *numbers, MPI_Comm *made)
{
    static int (*own)(MPI_Comm, int, MPI_Comm *);
    if (!own)
        own = (int (*)(MPI_Comm, int, MPI_Comm *))mpi_calls_find("Intercomm_merge");
    int high = local->all[0].key, theirs = remote->all[0].key;
    int is_second = high != theirs ? high > theirs : on->numbers[0] > on->peer_numbers[0];
    int at = is_second ? on->peers : 0, peers_at = is_second ? 0 : on->size;
    memcpy(numbers + at, on->numbers, (size_t)on->size * sizeof *numbers);
    memcpy(numbers + peers_at, on->peer_numbers, (size_t)on->peers * sizeof *numbers);
    memcpy(all + at, local->all, (size_t)on->size * sizeof *all);
    memcpy(all + peers_at, remote->all, (size_t)on->peers * sizeof *all);
    int status = making_meet(on);
    if (on->here) {
        TRY(status, own ? own(on->handle, is_second, made) : NO_MPI);
    } else {
        MPI_Errhandler errors;
        TRY(status, inter_copy_native(on->handle, made));
        TRY(status, real.Comm_get_errhandler(on->handle, &errors));
        TRY(status, real.Comm_set_errhandler(*made, errors));
        TRY(status, real.Errhandler_free(&errors));
    }
    return TRY(status, making_record(*made, all, NULL, on->size + on->peers, numbers));
}

int inter_merge(struct comm *on, int high, MPI_Comm *made)
{
    struct half local = {0}, remote = {0};
    size_t both = (size_t)on->size + (size_t)on->peers;
    struct says *all = malloc(both * sizeof *all);
    int32_t *numbers = malloc(both * sizeof *numbers);
    *made = handle.comm_null;
    int status = all && numbers ? split_halves(on, 0, high != 0, &local, &remote) : MPI_ERR_NO_MEM;
    TRY(status, merge(on, &local, &remote, all, numbers, made));
    if (local.all)
        making_end(status, local.all[on->rank].slot, made);
    half_free(&local);
    half_free(&remote);
    free(all);
    free(numbers);
    return status;
}
