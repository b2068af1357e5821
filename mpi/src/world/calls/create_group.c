/* A communicator of a group, made by its members alone: the others of the parent take no part. */
#define _GNU_SOURCE
#include "world/below/transfer.h"
#include "world/calls/check.h"
#include "world/calls/making.h"
#include "world/handles/groups.h"

#include <stdlib.h>

/* Hidden messages of collective operations have smaller tags. */
enum { FIRST_TAG = 16, TAGS = 1 << 14 };

static int rank_of(const struct comm *on, int32_t number)
{
    int rank = 0;
    while (rank < on->size && on->numbers[rank] != number)
        rank++;
    return rank < on->size ? rank : MPI_PROC_NULL;
}

/* The first member's next number is the communicator's: it tells the others. */
static int agree(struct comm *on, int size, const int32_t *numbers, int tag, uint64_t *number)
{
    int status = MPI_SUCCESS;
    tag = FIRST_TAG + tag % TAGS;
    if (numbers[0] != (int32_t)ours.world.me)
        return transfer_receive_now(on->hidden, number, (int)sizeof *number, handle.byte,
                                    rank_of(on, numbers[0]), tag, MPI_STATUS_IGNORE);
    *number = comm_next_number();
    for (int i = 1; i < size; i++)
        TRY(status, transfer_send_now(on->hidden, number, (int)sizeof *number, handle.byte,
                                      rank_of(on, numbers[i]), tag));
    return status;
}

static int create(struct comm *on, int size, const int32_t *numbers, int tag, MPI_Comm *made)
{
    uint64_t number = 0;
    MPI_Group here;
    for (int i = 0; i < size; i++)
        if (rank_of(on, numbers[i]) == MPI_PROC_NULL)
            return MPI_ERR_GROUP;
    int status = agree(on, size, numbers, tag, &number);
    TRY(status, group_make_here(size, numbers, &here));
    if (status != MPI_SUCCESS)
        return status;
    status = real.Comm_create_group(on->handle, here, tag, made);
    real.Group_free(&here);
    TRY(status, making_record(*made, number, size, numbers));
    return status;
}

EXPORT int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on || !group_find(group))
        return PASS(Comm_create_group, comm, group, tag, made);
    int size, is_mine = 0;
    int32_t *numbers = group_list(group, &size);
    for (int i = 0; i < size && numbers; i++)
        is_mine = is_mine || numbers[i] == (int32_t)ours.world.me;
    int status = numbers ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    *made = handle.comm_null;
    if (is_mine && (tag < 0 || (uint32_t)tag > ours.world.tag_ub))
        status = MPI_ERR_TAG;
    else if (is_mine)
        status = create(on, size, numbers, tag, made);
    free(numbers);
    return comm_error(on, status);
}
BOTH(Comm_create_group);
