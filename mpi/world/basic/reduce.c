/* Reductions in the order of ranks, which operations that do not commute need: a_0 op (a_1 op (... op
 * a_n)). */
#include "world/basic/basic.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = 3 };

/* Memory for `count` elements, as a buffer of that type. */
struct scratch {
    void *memory;
    char *buffer;
};

static int scratch_new(struct scratch *scratch, int64_t count, MPI_Datatype type)
{
    MPI_Aint low, extent, true_low, true_extent;
    int status = MPI_SUCCESS;
    TRY(status, real.Type_get_extent(type, &low, &extent));
    TRY(status, real.Type_get_true_extent(type, &true_low, &true_extent));
    scratch->memory = NULL;
    if (status != MPI_SUCCESS)
        return status;
    MPI_Aint bytes = true_extent + (count > 0 ? (count - 1) * extent : 0);
    scratch->memory = malloc((size_t)(bytes > 0 ? bytes : 1));
    scratch->buffer = (char *)scratch->memory - true_low;
    return scratch->memory ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Copies elements, if necessary by a message to this process itself, which works for every type. */
static int copy(struct comm *on, const void *from, void *into, int count, MPI_Datatype type)
{
    struct transfer sending = {0};
    struct shape shape;
    if (data_shape(type, &shape) == MPI_SUCCESS && shape.is_plain) {
        memmove(into, from, (size_t)(count * shape.bytes));
        return MPI_SUCCESS;
    }
    int status = transfer_send(&sending, on, from, count, type, on->rank, TAG);
    TRY(status, transfer_receive_now(on, into, count, type, on->rank, TAG, MPI_STATUS_IGNORE));
    int ended = transfer_wait(&sending, MPI_STATUS_IGNORE);
    return status != MPI_SUCCESS ? status : ended;
}

/* At the root: into = a_0 op ... op a_n. `own` is the root's own part; it is not used if the peers are
 * another group. */
static int collect(struct comm *on, const void *own, void *into, int count, MPI_Datatype type, MPI_Op op)
{
    struct scratch scratch;
    int status = scratch_new(&scratch, count, type), last = on->peers - 1;
    int mine = on->local ? -1 : on->rank;
    if (last == mine)
        TRY(status, copy(on, own, into, count, type));
    else
        TRY(status, transfer_receive_now(on, into, count, type, last, TAG, MPI_STATUS_IGNORE));
    for (int rank = last - 1; rank >= 0; rank--) {
        const void *part = scratch.buffer;
        if (rank == mine)
            part = own;
        else
            TRY(status, transfer_receive_now(on, scratch.buffer, count, type, rank, TAG, MPI_STATUS_IGNORE));
        TRY(status, real.Reduce_local(part, into, count, type, op));
    }
    free(scratch.memory);
    return status;
}

int basic_reduce(struct comm *on, const void *send, void *into, int count, MPI_Datatype type, MPI_Op op,
                 int root)
{
    if (root == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (on->local && root == MPI_ROOT)
        return collect(on, NULL, into, count, type, op);
    if (on->local || on->rank != root)
        return transfer_send_now(on, send, count, type, root, TAG);
    if (send != MPI_IN_PLACE)
        return collect(on, send, into, count, type, op);
    struct scratch own;
    int status = scratch_new(&own, count, type);
    TRY(status, copy(on, into, own.buffer, count, type));
    TRY(status, collect(on, own.buffer, into, count, type, op));
    free(own.memory);
    return status;
}

/* The first rank of each group gets the result of the other group. Each rank sends before it waits. */
static int reduce_over(struct comm *on, const void *send, void *into, int count, MPI_Datatype type, MPI_Op op)
{
    struct transfer sending = {0};
    int status = transfer_send(&sending, on, send, count, type, 0, TAG);
    if (on->rank == 0)
        TRY(status, collect(on, NULL, into, count, type, op));
    int ended = transfer_wait(&sending, MPI_STATUS_IGNORE);
    return status != MPI_SUCCESS ? status : ended;
}

int basic_allreduce(struct comm *on, const void *send, void *into, int count, MPI_Datatype type, MPI_Op op)
{
    int in_place = send == MPI_IN_PLACE;
    int status = on->local
                     ? reduce_over(on, send, into, count, type, op)
                     : basic_reduce(on, in_place && on->rank != 0 ? into : send, into, count, type, op, 0);
    TRY(status, basic_bcast(on->local ? on->local : on, into, count, type, 0));
    return status;
}

/* `counts` is indexed by the ranks of this rank's own group. */
int basic_reduce_scatter(struct comm *on, const void *send, void *into, const int *counts, int count,
                         MPI_Datatype type, MPI_Op op)
{
    struct scratch whole;
    int64_t all = 0;
    int *starts = malloc((size_t)on->size * sizeof *starts), mine = counts ? counts[on->rank] : count;
    for (int rank = 0; rank < on->size && starts; rank++) {
        starts[rank] = (int)all;
        all += counts ? counts[rank] : count;
    }
    int status = starts && all <= INT32_MAX ? scratch_new(&whole, all, type) : MPI_ERR_NO_MEM;
    if (status != MPI_SUCCESS) {
        free(starts);
        return status;
    }
    const void *own = send == MPI_IN_PLACE ? into : send;
    struct blocks blocks;
    status = on->local ? reduce_over(on, own, whole.buffer, (int)all, type, op)
                       : basic_reduce(on, own, whole.buffer, (int)all, type, op, 0);
    TRY(status, counts ? blocks_listed(&blocks, whole.buffer, counts, starts, type)
                       : blocks_even(&blocks, whole.buffer, count, type));
    TRY(status, basic_scatter(on->local ? on->local : on, &blocks, into, mine, type, 0));
    free(starts);
    free(whole.memory);
    return status;
}

/* Each rank receives the result of the ranks before it, adds its own part, and passes it on. */
static int chain(struct comm *on, const void *own, void *before, void *with, int count, MPI_Datatype type,
                 MPI_Op op)
{
    int status = copy(on, own, with, count, type);
    if (on->rank > 0) {
        TRY(status, transfer_receive_now(on, before, count, type, on->rank - 1, TAG, MPI_STATUS_IGNORE));
        TRY(status, real.Reduce_local(before, with, count, type, op));
    }
    if (on->rank + 1 < on->size)
        TRY(status, transfer_send_now(on, with, count, type, on->rank + 1, TAG));
    return status;
}

int basic_scan(struct comm *on, const void *send, void *into, int count, MPI_Datatype type, MPI_Op op)
{
    struct scratch before, own = {0};
    int status = scratch_new(&before, count, type);
    if (send == MPI_IN_PLACE) {
        TRY(status, scratch_new(&own, count, type));
        TRY(status, copy(on, into, own.buffer, count, type));
        send = own.buffer;
    }
    TRY(status, chain(on, send, before.buffer, into, count, type, op));
    free(before.memory);
    free(own.memory);
    return status;
}

/* Rank 0's buffer is left unchanged. */
int basic_exscan(struct comm *on, const void *send, void *into, int count, MPI_Datatype type, MPI_Op op)
{
    struct scratch before = {0}, with = {0};
    int status = scratch_new(&before, count, type);
    TRY(status, scratch_new(&with, count, type));
    TRY(status, chain(on, send == MPI_IN_PLACE ? into : send, before.buffer, with.buffer, count, type, op));
    if (on->rank > 0)
        TRY(status, copy(on, before.buffer, into, count, type));
    free(before.memory);
    free(with.memory);
    return status;
}
