/* MPI_Comm_create_group, which only the members of the group call: they exchange what is needed by messages
 * among themselves. */
#define _GNU_SOURCE
#include "world/calls/check.h"
#include "world/calls/making.h"
#include "world/handles/groups.h"
#include "world/native/transfer.h"

#include <stdlib.h>

/* Tags of these messages: distinct from those of collective operations, and within the range of any MPI. */
enum { FIRST_TAG = 1 << 10, TAGS = 1 << 12 };

/* The members at this site wait for each other, making progress, before a native call that blocks: the first
 * of them receives from the others, and then answers them. */
static int meet_here(struct comm *on, int size, const int *ranks, int mine, int tag)
{
    int status = MPI_SUCCESS, first = 0;
    char word = 0;
    while (on->native[ranks[first]] == FAR)
        first++;
    if (first != mine) {
        status = transfer_send_now(on, &word, 1, handle.byte, ranks[first], tag);
        return TRY(status,
                   transfer_receive_now(on, &word, 1, handle.byte, ranks[first], tag, MPI_STATUS_IGNORE));
    }
    for (int round = 0; round < 2; round++)
        for (int i = first + 1; i < size; i++)
            if (on->native[ranks[i]] != FAR)
                TRY(status, round ? transfer_send_now(on, &word, 1, handle.byte, ranks[i], tag)
                                  : transfer_receive_now(on, &word, 1, handle.byte, ranks[i], tag,
                                                         MPI_STATUS_IGNORE));
    return status;
}

/* The first member collects what each of them has to say, and sends it all to all of them. */
static int agree(struct comm *on, int size, const int *ranks, int mine, int tag, struct says *all)
{
    int status = MPI_SUCCESS, each = SAYS_LONGS;
    MPI_Datatype number = handle.types[TYPE_LONG];
    if (mine != 0) {
        status = transfer_send_now(on, &all[mine], each, number, ranks[0], tag);
        return TRY(status,
                   transfer_receive_now(on, all, size * each, number, ranks[0], tag, MPI_STATUS_IGNORE));
    }
    for (int i = 1; i < size; i++)
        TRY(status, transfer_receive_now(on, &all[i], each, number, ranks[i], tag, MPI_STATUS_IGNORE));
    for (int i = 1; i < size; i++)
        TRY(status, transfer_send_now(on, all, size * each, number, ranks[i], tag));
    return status;
}

static int is_within(int size, const int32_t *numbers)
{
    int is = 1;
    for (int i = 0; i < size; i++)
        is = is && world_is_here(&ours.world, (uint32_t)numbers[i]);
    return is;
}

/* The native part is made first, so that all learn in one exchange whether each has it. */
static int create(struct comm *on, int size, const int32_t *numbers, int tag, MPI_Comm *made)
{
    int *ranks = malloc((size_t)size * sizeof *ranks + 1), own = FIRST_TAG + tag % TAGS;
    struct says *all = malloc((size_t)size * sizeof *all + 1);
    MPI_Group here = handle.group_null;
    int status = ranks && all ? making_ranks(on, size, numbers, ranks) : MPI_ERR_NO_MEM, mine = 0;
    while (mine < size && numbers[mine] != (int32_t)ours.world.me)
        mine++;
    if (mine == size)
        TRY(status, MPI_ERR_GROUP);
    if (status == MPI_SUCCESS) {
        status = making_group(on, size, ranks, &here);
        TRY(status, meet_here(on->hidden, size, ranks, mine, own));
        TRY(status, real.Comm_create_group(on->handle, here, tag, made));
        if (!is_within(size, numbers)) {
            all[mine] = making_say(0, 0, status);
            int32_t slot = all[mine].slot;
            int told = agree(on->hidden, size, ranks, mine, own, all);
            TRY(status, told);
            if (told == MPI_SUCCESS && !making_judge(all, size, numbers))
                TRY(status, MPI_ERR_OTHER);
            TRY(status, making_record(*made, all, NULL, size, numbers));
            making_end(status, slot, made);
        }
    }
    if (here != handle.group_null && here != handle.group_empty)
        real.Group_free(&here);
    free(ranks);
    free(all);
    return status;
}

EXPORT int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    struct comm *on = comm_find(comm);
    if (!on)
        return PASS(Comm_create_group, comm, group, tag, made);
    int size = 0;
    NEEDS(on, made);
    if (group == handle.group_null)
        return comm_error(on, MPI_ERR_GROUP);
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
