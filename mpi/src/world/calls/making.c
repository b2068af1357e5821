#include "world/calls/making.h"

#include "world/below/local.h"
#include "world/plain/plain.h"

int making_exchange(struct comm *on, int color, int key, struct says *all)
{
    struct says mine = {color, key, comm_next_number()};
    struct blocks blocks;
    int status = blocks_even(&blocks, all, (int)sizeof mine, handle.byte);
    TRY(status, plain_allgather(on->hidden, &mine, (int)sizeof mine, handle.byte, &blocks));
    return status;
}

/* Without attributes, whose callbacks are not to see it. */
static int make_hidden(MPI_Comm native, MPI_Comm *hidden)
{
    MPI_Group group;
    int status = real.Comm_group(native, &group);
    TRY(status, local_meet(native));
    if (status != MPI_SUCCESS)
        return status;
    status = real.Comm_create(native, group, hidden);
    real.Group_free(&group);
    TRY(status, real.Comm_set_errhandler(*hidden, handle.errors_return));
    return status;
}

int making_record(MPI_Comm native, uint64_t number, int size, const int32_t *numbers)
{
    int is_far = 0;
    for (int i = 0; i < size; i++)
        is_far = is_far || !world_is_here(&ours.world, (uint32_t)numbers[i]);
    if (!is_far)
        return MPI_SUCCESS;
    MPI_Comm hidden;
    int status = make_hidden(native, &hidden);
    if (status == MPI_SUCCESS && !comm_make(native, hidden, number, size, numbers))
        status = MPI_ERR_NO_MEM;
    return status;
}
