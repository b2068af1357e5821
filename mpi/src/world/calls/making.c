#include "world/calls/making.h"

#include "binding/export.h"

#include "world/below/local.h"
#include "world/calls/inter.h"
#include "world/plain/plain.h"

#include <stdlib.h>

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

static void (*tell_above)(MPI_Comm);

EXPORT void causeway_world_on_new(void (*made)(MPI_Comm)) { tell_above = made; }

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
    if (status == MPI_SUCCESS && tell_above)
        tell_above(native);
    return status;
}

int making_members(const struct says *all, int size, int color, int *ranks)
{
    int count = 0;
    for (int rank = 0; rank < size; rank++) {
        if (all[rank].color != color)
            continue;
        int at = count++;
        for (; at > 0 && all[ranks[at - 1]].key > all[rank].key; at--)
            ranks[at] = ranks[at - 1];
        ranks[at] = rank;
    }
    return count;
}

static int split(struct comm *on, const struct says *all, int color, int *ranks, int32_t *numbers,
                 MPI_Comm *made)
{
    int count = color < 0 ? 0 : making_members(all, on->size, color, ranks), order = 0;
    for (int i = 0; i < count; i++) {
        numbers[i] = on->numbers[ranks[i]];
        if (ranks[i] == on->rank)
            order = i;
    }
    int status = local_meet(on->handle);
    TRY(status, real.Comm_split(on->handle, color < 0 ? MPI_UNDEFINED : color, order, made));
    if (count)
        TRY(status, making_record(*made, all[ranks[0]].number, count, numbers));
    return status;
}

int making_split(struct comm *on, int color, int key, MPI_Comm *made)
{
    if (on->local)
        return inter_split(on, color, key, made);
    struct says *all = malloc((size_t)on->size * sizeof *all);
    int *ranks = malloc((size_t)on->size * sizeof *ranks);
    int32_t *numbers = malloc((size_t)on->size * sizeof *numbers);
    int status = all && ranks && numbers ? making_exchange(on, color, key, all) : MPI_ERR_NO_MEM;
    TRY(status, split(on, all, color, ranks, numbers, made));
    free(all);
    free(ranks);
    free(numbers);
    return status;
}
