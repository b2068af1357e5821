#include "world/handles/comms.h"

#include "world/engine/matching.h"
#include "world/engine/numbers.h"
#include "world/handles/key.h"

#include <stdlib.h>
#include <string.h>

struct comm *comm_last;

static struct numbers table;
static uint64_t last_number;

struct comm *comm_search(MPI_Comm handle)
{
    struct comm *comm = numbers_find(&table, KEY(handle));
    if (comm)
        comm_last = comm;
    return comm;
}

uint64_t comm_next_number(void) { return ++last_number; }

static void forget(struct comm *comm)
{
    free(comm->numbers);
    free(comm);
}

static struct comm *make(MPI_Comm native, uint64_t context, int size, const int32_t *numbers)
{
    struct comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    comm->numbers = malloc(3 * (size_t)size * sizeof *comm->numbers);
    if (!comm->numbers) {
        free(comm);
        return NULL;
    }
    comm->native = comm->numbers + size;
    comm->rank_of = comm->native + size;
    memcpy(comm->numbers, numbers, (size_t)size * sizeof *numbers);
    comm->handle = native;
    comm->size = size;
    comm->holders = 1;
    for (int i = 0; i < size; i++) {
        int is_here = world_is_here(&ours.world, (uint32_t)numbers[i]);
        comm->native[i] = is_here ? comm->here : FAR;
        if (is_here)
            comm->rank_of[comm->here++] = i;
        if (numbers[i] == (int32_t)ours.world.me)
            comm->rank = i;
    }
    comm->channel =
        (struct channel){.context = context, .numbers = comm->numbers, .size = (uint32_t)size, .owner = comm};
    if (engine_channel_open(ours.engine, &comm->channel)) {
        forget(comm);
        return NULL;
    }
    return comm;
}

/* World number of the first rank (24 bits), its count (39), hidden (1): unique without asking anybody. */
static uint64_t context_of(int32_t first, uint64_t number, int is_hidden)
{
    return (uint64_t)(uint32_t)first << 40 | number << 1 | (unsigned)is_hidden;
}

struct comm *comm_make(MPI_Comm handle, MPI_Comm hidden, uint64_t first_number, int size,
                       const int32_t *numbers)
{
    struct comm *comm = make(handle, context_of(numbers[0], first_number, 0), size, numbers);
    if (!comm)
        return NULL;
    comm->hidden = make(hidden, context_of(numbers[0], first_number, 1), size, numbers);
    if (!comm->hidden || numbers_add(&table, KEY(handle), comm))
        return NULL;
    return comm;
}

void comm_hold(struct comm *comm) { comm->holders++; }

void comm_release(struct comm *comm)
{
    if (--comm->holders > 0)
        return;
    engine_channel_close(ours.engine, &comm->channel);
    if (comm->hidden)
        comm_release(comm->hidden);
    real.Comm_free(&comm->handle);
    topology_release(comm->topology);
    forget(comm);
}

int comm_free(struct comm *comm)
{
    numbers_remove(&table, KEY(comm->handle));
    comm_last = NULL;
    comm->is_freed = 1;
    comm_release(comm);
    return MPI_SUCCESS;
}

int comm_error(const struct comm *comm, int code)
{
    if (code != MPI_SUCCESS)
        real.Comm_call_errhandler(comm->handle, code);
    return code;
}
