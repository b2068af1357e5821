#include "world/calls/making.h"

#include "common/binding/export.h"

#include "world/basic/basic.h"
#include "world/handles/slots.h"
#include "world/native/native.h"

#include <stdio.h>
#include <stdlib.h>

/* MPICH has 2046 communicators. The library above makes one or two more for each communicator, so it makes
 * none once there are this many, its own included: that leaves room for a thousand. */
enum { FEW = 1000 };

static int are_made(void *of)
{
    const struct comm *on = of;
    return on->duplicated == on->duplicates;
}

int making_meet(struct comm *on)
{
    if (progress_has_hook)
        progress_until(are_made, on, 0);
    return native_meet(on->handle);
}

int making_ranks(const struct comm *on, int size, const int32_t *numbers, int *ranks)
{
    for (int i = 0; i < size; i++) {
        ranks[i] = 0;
        while (ranks[i] < on->size && on->numbers[ranks[i]] != numbers[i])
            ranks[i]++;
        if (ranks[i] == on->size)
            return MPI_ERR_GROUP;
    }
    return MPI_SUCCESS;
}

int making_group(const struct comm *on, int size, const int *ranks, MPI_Group *here)
{
    int *native = malloc((size_t)size * sizeof *native + 1), count = 0;
    MPI_Group all;
    int status = native ? real.Comm_group(on->handle, &all) : MPI_ERR_NO_MEM;
    if (status != MPI_SUCCESS) {
        free(native);
        return status;
    }
    for (int i = 0; i < size; i++)
        if (on->native[ranks[i]] != FAR)
            native[count++] = on->native[ranks[i]];
    status = real.Group_incl(all, count, native, here);
    real.Group_free(&all);
    free(native);
    return status;
}

struct says making_say(int color, int key, int status)
{
    struct says mine = {.number = (int64_t)comm_next_number(),
                        .color = color,
                        .key = key,
                        .slot = slot_take(),
                        .alive = comms_count()};
    mine.has_failed = status != MPI_SUCCESS || mine.slot == NO_SLOT;
    return mine;
}

int making_judge(const struct says *all, int size, const int32_t *numbers)
{
    int failed = 0, first = 0;
    while (failed < size && !all[failed].has_failed)
        failed++;
    while (first < size && !world_is_here(&ours.world, (uint32_t)numbers[first]))
        first++;
    if (failed == size)
        return 1;
    const struct process *process = &ours.world.processes[numbers[failed]];
    if (first < size && numbers[first] == (int32_t)ours.world.me)
        fprintf(
            stderr,
            "causeway world: the MPI of site %s made no communicator, so none is made at any site: an attribute's "
            "copy function returned an error, or it has no more of them; then free some (rank %d has %lld over "
            "sites, or more within its own)\n",
            ours.world.site_names[process->site], numbers[failed], (long long)all[failed].alive);
    return 0;
}

int making_exchange(struct comm *on, int color, int key, int status, struct says *all)
{
    struct says mine = making_say(color, key, status);
    struct blocks blocks;
    MPI_Datatype number = handle.types[TYPE_LONG];
    int told = blocks_even(&blocks, all, SAYS_LONGS, number);
    TRY(told, basic_allgather(on->hidden, &mine, SAYS_LONGS, number, &blocks));
    all[on->rank] = mine;
    TRY(status, told);
    if (told == MPI_SUCCESS && !making_judge(all, on->size, on->numbers))
        TRY(status, MPI_ERR_OTHER);
    return status;
}

static void (*tell_above)(MPI_Comm, int);

EXPORT void causeway_world_on_new(void (*made)(MPI_Comm, int)) { tell_above = made; }

int making_record(MPI_Comm native, const struct says *all, const int *ranks, int size, const int32_t *numbers)
{
    int is_far = 0;
    uint32_t most = 0;
    int32_t *slots = malloc((size_t)size * sizeof *slots + 1);
    if (!slots)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < size; i++) {
        const struct says *says = &all[ranks ? ranks[i] : i];
        is_far = is_far || !world_is_here(&ours.world, (uint32_t)numbers[i]);
        slots[i] = says->slot;
        most = says->alive > most ? says->alive : most;
    }
    int status = MPI_SUCCESS;
    if (is_far && !comm_make(native, all[ranks ? ranks[0] : 0].number, size, numbers, slots))
        status = MPI_ERR_NO_MEM;
    free(slots);
    if (is_far && status == MPI_SUCCESS && tell_above && (most >= FEW || !task_is_running()))
        tell_above(native, most < FEW);
    return status;
}

int making_end(int status, int32_t slot, MPI_Comm *made)
{
    struct comm *record = *made == handle.comm_null ? NULL : comm_find(*made);
    if (!record || record->hidden->slot != slot)
        slot_give_back(slot);
    if (status != MPI_SUCCESS && !record && *made != handle.comm_null)
        real.Comm_free(made);
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

/* The native part is made first, so that all learn in one exchange whether each has it. Native ranks are in
 * the same order as ranks, so the native part gets the right order by itself. */
static int split(struct comm *on, struct says *all, int color, int key, int *ranks, int32_t *numbers,
                 MPI_Comm *made)
{
    int status = making_meet(on);
    TRY(status, real.Comm_split(on->handle, color < 0 ? MPI_UNDEFINED : color, key, made));
    status = making_exchange(on, color, key, status, all);
    int count = color < 0 || status != MPI_SUCCESS ? 0 : making_members(all, on->size, color, ranks);
    for (int i = 0; i < count; i++)
        numbers[i] = on->numbers[ranks[i]];
    if (count)
        TRY(status, making_record(*made, all, ranks, count, numbers));
    return making_end(status, all[on->rank].slot, made);
}

int making_split(struct comm *on, int color, int key, MPI_Comm *made)
{
    struct says *all = malloc((size_t)on->size * sizeof *all);
    int *ranks = malloc((size_t)on->size * sizeof *ranks);
    int32_t *numbers = malloc((size_t)on->size * sizeof *numbers);
    *made = handle.comm_null;
    int status = all && ranks && numbers ? split(on, all, color, key, ranks, numbers, made) : MPI_ERR_NO_MEM;
    free(all);
    free(ranks);
    free(numbers);
    return status;
}
