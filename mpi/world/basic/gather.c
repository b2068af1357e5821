/* Gathers, scatters and exchanges: each block is one message. */
#include "world/basic/basic.h"

#include "common/binding/texts.h"

#include <stdlib.h>

enum { TAG = 2 };

/* Messages in transit. */
struct many {
    struct transfer *all;
    int count;
};

static int many_new(struct many *many, int most)
{
    *many = (struct many){.all = calloc((size_t)most, sizeof *many->all)};
    return many->all ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Waits even after a failure: transfers that have begun use the program's memory. */
static int many_end(struct many *many, int status)
{
    int ended = transfer_wait_all(many->all, many->count);
    free(many->all);
    return status != MPI_SUCCESS ? status : ended;
}

static int least(int one, int other) { return one < other ? one : other; }

/* In an intercommunicator the root passes MPI_ROOT; to others, `root` is a rank of the other group. */
static int is_root(const struct comm *on, int root)
{
    return on->local ? root == MPI_ROOT : root == on->rank;
}

/* This rank among its peers; -1 if they are another group. */
static int own_place(const struct comm *on) { return on->local ? -1 : on->rank; }

static int begin_receive(struct many *many, struct comm *on, const struct blocks *into, int rank)
{
    return transfer_receive(&many->all[many->count++], on, block_at(into, rank), block_count(into, rank),
                            block_type(into, rank), rank, TAG);
}

static int begin_send(struct many *many, struct comm *on, const void *buffer, int count, MPI_Datatype type,
                      int rank)
{
    return transfer_send(&many->all[many->count++], on, buffer, count, type, rank, TAG);
}

int basic_gather(struct comm *on, const void *send, int count, MPI_Datatype type, const struct blocks *into,
                 int root)
{
    if (root == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (!is_root(on, root))
        return transfer_send_now(on, send, count, type, root, TAG);
    struct many many;
    int status = many_new(&many, on->peers + 1), own = own_place(on);
    if (status != MPI_SUCCESS)
        return status;
    for (int rank = 0; rank < on->peers; rank++)
        if (rank != own || send != MPI_IN_PLACE)
            TRY(status, begin_receive(&many, on, into, rank));
    if (own >= 0 && send != MPI_IN_PLACE)
        TRY(status, begin_send(&many, on, send, count, type, root));
    return many_end(&many, status);
}

int basic_scatter(struct comm *on, const struct blocks *from, void *receive, int count, MPI_Datatype type,
                  int root)
{
    if (root == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (!is_root(on, root))
        return transfer_receive_now(on, receive, count, type, root, TAG, MPI_STATUS_IGNORE);
    struct many many;
    int status = many_new(&many, on->peers + 1), own = own_place(on);
    if (status != MPI_SUCCESS)
        return status;
    if (own >= 0 && receive != MPI_IN_PLACE)
        TRY(status, transfer_receive(&many.all[many.count++], on, receive, count, type, root, TAG));
    for (int rank = 0; rank < on->peers; rank++)
        if (rank != own || receive != MPI_IN_PLACE)
            TRY(status, begin_send(&many, on, block_at(from, rank), block_count(from, rank),
                                   block_type(from, rank), rank));
    return many_end(&many, status);
}

static int from_each_to_each(struct comm *on, const void *send, int count, MPI_Datatype type,
                             const struct blocks *into)
{
    struct many many;
    int status = many_new(&many, 2 * on->peers), is_in_place = send == MPI_IN_PLACE, own = own_place(on);
    if (status != MPI_SUCCESS)
        return status;
    for (int rank = 0; rank < on->peers; rank++)
        if (rank != own || !is_in_place)
            TRY(status, begin_receive(&many, on, into, rank));
    if (is_in_place) {
        send = block_at(into, on->rank);
        count = block_count(into, on->rank);
        type = block_type(into, on->rank);
    }
    for (int rank = 0; rank < on->peers; rank++)
        if (rank != own || !is_in_place)
            TRY(status, begin_send(&many, on, send, count, type, rank));
    return many_end(&many, status);
}

/* Begins to send the blocks of ranks `first` to `end` - 1 to another rank, or to receive them from it; in one
 * message if they are contiguous. */
static int begin_blocks(struct many *many, struct comm *on, const struct blocks *of, int first, int end,
                        int other, int is_sent)
{
    int status = MPI_SUCCESS;
    int64_t whole = (int64_t)(end - first) * of->count;
    int is_one = !of->counts && !of->starts && !of->types && whole <= INT32_MAX;
    for (int rank = first; rank < end && status == MPI_SUCCESS; rank = is_one ? end : rank + 1) {
        struct transfer *transfer = &many->all[many->count++];
        int count = is_one ? (int)whole : block_count(of, rank);
        void *at = block_at(of, rank);
        MPI_Datatype type = block_type(of, rank);
        status = is_sent ? transfer_send(transfer, on, at, count, type, other, TAG)
                         : transfer_receive(transfer, on, at, count, type, other, TAG);
    }
    return status;
}

/* Transfers blocks over one edge of the tree: those of ranks `first` to `end` - 1 if `are_these`, otherwise
 * all others. */
static int exchange_blocks(struct comm *on, const struct blocks *of, int first, int end, int other,
                           int is_sent, int are_these)
{
    struct many many;
    int status = many_new(&many, on->size + 1);
    if (status != MPI_SUCCESS)
        return status;
    if (are_these)
        TRY(status, begin_blocks(&many, on, of, first, end, other, is_sent));
    else {
        TRY(status, begin_blocks(&many, on, of, 0, first, other, is_sent));
        TRY(status, begin_blocks(&many, on, of, end, on->size, other, is_sent));
    }
    return many_end(&many, status);
}

/* Copies this rank's own block to its place among all blocks. */
static int place_own(struct comm *on, const void *send, int count, MPI_Datatype type,
                     const struct blocks *into)
{
    struct many many;
    if (send == MPI_IN_PLACE)
        return MPI_SUCCESS;
    int status = many_new(&many, 2);
    if (status != MPI_SUCCESS)
        return status;
    TRY(status, begin_receive(&many, on, into, on->rank));
    TRY(status, begin_send(&many, on, send, count, type, on->rank));
    return many_end(&many, status);
}

/* Sites may give different lengths for the same text. Then each rank's part is a message of its own, sent by
 * the rank that knows its length. All ranks get the same answer. */
static int may_be_texts(struct comm *on, const struct blocks *of)
{
    int may = 0;
    for (int rank = 0; rank < on->size && !may; rank = of->counts || of->types ? rank + 1 : on->size) {
        struct shape shape;
        if (data_shape(block_type(of, rank), &shape) == MPI_SUCCESS)
            may = texts_have_length(block_count(of, rank) * shape.bytes);
    }
    return may;
}

/* Uses the tree of the barrier: blocks go up to rank 0, and down again except those that the receiver has. If
 * each rank sent to each, every pair of ranks at two sites would need a stream of its own. */
int basic_allgather(struct comm *on, const void *send, int count, MPI_Datatype type,
                    const struct blocks *into)
{
    if (on->local || may_be_texts(on, into))
        return from_each_to_each(on, send, count, type, into);
    int status = place_own(on, send, count, type, into), bit = 1, size = on->size, rank = on->rank;
    for (; bit < size && !(rank & bit); bit *= 2)
        if (rank + bit < size)
            TRY(status, exchange_blocks(on, into, rank + bit, least(rank + 2 * bit, size), rank + bit, 0, 1));
    if (rank > 0) {
        int end = least(rank + bit, size);
        TRY(status, exchange_blocks(on, into, rank, end, rank - bit, 1, 1));
        TRY(status, exchange_blocks(on, into, rank, end, rank - bit, 0, 0));
    }
    for (bit /= 2; bit > 0; bit /= 2)
        if (rank + bit < size)
            TRY(status, exchange_blocks(on, into, rank + bit, least(rank + 2 * bit, size), rank + bit, 1, 0));
    return status;
}

/* Sends a copy of a block while the other rank's block is received in its place. */
static int exchange_block(struct comm *on, const struct blocks *into, int rank)
{
    int count = block_count(into, rank);
    MPI_Datatype type = block_type(into, rank);
    struct shape shape;
    int status = data_shape(type, &shape);
    if (status != MPI_SUCCESS || count * shape.bytes > INT32_MAX)
        return status != MPI_SUCCESS ? status : MPI_ERR_COUNT;
    char *packed = malloc((size_t)(count * shape.bytes) + 1);
    if (!packed)
        return MPI_ERR_NO_MEM;
    struct transfer sending = {0};
    TRY(status, data_pack(block_at(into, rank), count, type, &shape, packed));
    TRY(status, transfer_send(&sending, on, packed, (int)(count * shape.bytes), handle.byte, rank, TAG));
    TRY(status, transfer_receive_now(on, block_at(into, rank), count, type, rank, TAG, MPI_STATUS_IGNORE));
    int ended = transfer_wait(&sending, MPI_STATUS_IGNORE);
    free(packed);
    return status != MPI_SUCCESS ? status : ended;
}

/* Both ranks of a pair exchange in the same round. */
static int exchange_in_place(struct comm *on, const struct blocks *into)
{
    int status = MPI_SUCCESS;
    for (int round = 0; round < on->size; round++) {
        int rank = (round - on->rank + on->size) % on->size;
        if (rank != on->rank)
            TRY(status, exchange_block(on, into, rank));
    }
    return status;
}

int basic_alltoall(struct comm *on, const struct blocks *from, const struct blocks *into)
{
    if (from->buffer == MPI_IN_PLACE)
        return exchange_in_place(on, into);
    struct many many;
    int status = many_new(&many, 2 * on->peers);
    if (status != MPI_SUCCESS)
        return status;
    for (int i = 0; i < on->peers; i++)
        TRY(status, begin_receive(&many, on, into, (on->rank + i) % on->peers));
    for (int i = 0; i < on->peers; i++) {
        int rank = (on->rank + i) % on->peers;
        TRY(status, begin_send(&many, on, block_at(from, rank), block_count(from, rank),
                               block_type(from, rank), rank));
    }
    return many_end(&many, status);
}
