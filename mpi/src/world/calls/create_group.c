/* MPI_Comm_create_group, which only its group calls: what the others would say comes by messages within it.
 */
#define _GNU_SOURCE
#include "world/below/transfer.h"
#include "world/calls/check.h"
#include "world/calls/making.h"
#include "world/handles/groups.h"

#include <stdlib.h>

/* Tags of these messages: apart from those of collective operations, and within what any MPI takes. */
enum { FIRST_TAG = 1 << 10, TAGS = 1 << 14 };

/* The ranks of a group in a communicator, this one's place among them; -1 where one is not in it. */
static int places(const struct comm *on, int size, const int32_t *numbers, int *ranks)
{
    int mine = -1;
    for (int i = 0; i < size; i++) {
        int rank = 0;
        while (rank < on->size && on->numbers[rank] != numbers[i])
            rank++;
        if (rank == on->size)
            return -1;
        ranks[i] = rank;
        if (rank == on->rank)
            mine = i;
    }
    return mine;
}

/* The first collects a word of each, so that all are there, and tells its number to all. */
static int agree(struct comm *on, int size, const int *ranks, int mine, int tag, uint64_t *number)
{
    int status = MPI_SUCCESS, bytes = (int)sizeof *number;
    *number = comm_next_number();
    if (mine != 0) {
        status = transfer_send_now(on, number, bytes, handle.byte, ranks[0], tag);
        return TRY(status,
                   transfer_receive_now(on, number, bytes, handle.byte, ranks[0], tag, MPI_STATUS_IGNORE));
    }
    uint64_t word;
    for (int i = 1; i < size; i++)
        TRY(status, transfer_receive_now(on, &word, bytes, handle.byte, ranks[i], tag, MPI_STATUS_IGNORE));
    for (int i = 1; i < size; i++)
        TRY(status, transfer_send_now(on, number, bytes, handle.byte, ranks[i], tag));
    return status;
}

static int create(struct comm *on, int size, const int32_t *numbers, int tag, MPI_Comm *made)
{
    int *ranks = malloc((size_t)size * sizeof *ranks + 1), own = FIRST_TAG + tag % TAGS;
    int mine = ranks ? places(on, size, numbers, ranks) : -1;
    uint64_t number;
    MPI_Group here = handle.group_null;
    int status = ranks ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (status == MPI_SUCCESS && mine < 0)
        status = MPI_ERR_GROUP;
    TRY(status, agree(on->hidden, size, ranks, mine, own, &number));
    TRY(status, group_make_here(size, numbers, &here));
    TRY(status, real.Comm_create_group(on->handle, here, tag, made));
    TRY(status, making_record(*made, number, size, numbers));
    if (here != handle.group_null && here != handle.group_empty)
        real.Group_free(&here);
    free(ranks);
    return status;
}

EXPORT int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Comm_create_group, comm, group, tag, made);
    int size = 0;
    int32_t *numbers = group_list(group, &size);
    *made = handle.comm_null;
    int status = numbers ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (on->local)
        status = MPI_ERR_COMM;
    if (status == MPI_SUCCESS && size > 0)
        status = tag < 0 ? MPI_ERR_TAG : create(on, size, numbers, tag, made);
    free(numbers);
    return comm_error(on, status);
}
BOTH(Comm_create_group);
