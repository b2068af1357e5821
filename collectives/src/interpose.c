/* The calls that programs make: each is improved where the communicator spans sites and the arguments are such that it can be, and
 * otherwise the MPI's own. MPI_X and PMPI_X are one function: C calls the one, Fortran, by MPI and flavour, one or the other, and tools
 * that are preloaded before this library call the second. Here are those that begin and end, and those of one vector; interpose_blocks.c has
 * those with a block for each rank. */
#define _GNU_SOURCE
#include "algorithms.h"
#include "enter.h"
#include "sites.h"

#include <limits.h>
#include <stdlib.h>

static void begin(void)
{
    if (mpi_calls_fit())
        sites_learn();
    if (mpi_calls_fit() && (sites_count > 1 || choice_wants_one_site()))
        choice_learn();
}

EXPORT int MPI_Init(int *argc, char ***argv)
{
    int status = PASS(Init, argc, argv);
    if (status == MPI_SUCCESS)
        begin();
    return status;
}
BOTH(Init);

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int status = PASS(Init_thread, argc, argv, required, provided);
    if (status == MPI_SUCCESS)
        begin();
    return status;
}
BOTH(Init_thread);

EXPORT int MPI_Finalize(void)
{
    levels_end();
    return PASS(Finalize);
}
BOTH(Finalize);

EXPORT int MPI_Comm_free(MPI_Comm *comm)
{
    if (comm)
        levels_forget(*comm);
    return PASS(Comm_free, comm);
}
BOTH(Comm_free);

EXPORT int MPI_Comm_disconnect(MPI_Comm *comm)
{
    if (comm)
        levels_forget(*comm);
    return PASS(Comm_disconnect, comm);
}
BOTH(Comm_disconnect);

EXPORT int MPI_Barrier(MPI_Comm comm)
{
    struct levels *on = enter_any(comm, OF_BARRIER);
    return on ? levels_leave(on, barrier_speakers(on)) : PASS(Barrier, comm);
}
BOTH(Barrier);

EXPORT int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct shape shape;
    struct choice choice;
    struct levels *on = enter(comm, OF_BCAST, count, type, &shape, &choice);
    if (on && !is_root(on, root))
        on = give_up(on);
    if (!on)
        return PASS(Bcast, buffer, count, type, root, comm);
    return levels_leave(on, bcast_flits(on, buffer, count, &shape, root, choice.flit));
}
BOTH(Bcast);

static int reduce(struct levels *on, const void *from, void *into, int count, const struct shape *shape, MPI_Op op, int root,
                  const struct choice *choice)
{
    if (choice->algorithm == GATHERED)
        return reduce_gathered(on, from, into, count, shape, op, root);
    if (choice->algorithm == BLOCKS)
        return reduce_blocks(on, from, into, count, shape, op, root);
    return reduce_flits(on, from, into, count, shape, op, root, choice->flit);
}

EXPORT int MPI_Reduce(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    struct shape shape;
    struct choice choice;
    struct levels *on = enter_reduction(comm, OF_REDUCE, count, type, op, &shape, &choice);
    if (on && !is_root(on, root))
        on = give_up(on);
    if (!on)
        return PASS(Reduce, from, into, count, type, op, root, comm);
    return levels_leave(on, reduce(on, from, into, count, &shape, op, root, &choice));
}
BOTH(Reduce);

static int allreduce(struct levels *on, const void *from, void *into, int count, const struct shape *shape, MPI_Op op,
                     const struct choice *choice)
{
    if (choice->algorithm == GATHERED)
        return reduce_gathered(on, from, into, count, shape, op, -1);
    if (choice->algorithm == BLOCKS)
        return allreduce_blocks(on, from, into, count, shape, op, choice->flit);
    int hub = links_hub(on->links, on->sites, (int64_t)count * shape->size);
    if (hub >= 0)
        return allreduce_hub(on, from, into, count, shape, op, hub, choice->flit);
    return allreduce_flits(on, from, into, count, shape, op, choice->flit, choice->ahead);
}

EXPORT int MPI_Allreduce(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct shape shape;
    struct choice choice;
    struct levels *on = enter_reduction(comm, OF_ALLREDUCE, count, type, op, &shape, &choice);
    if (!on)
        return PASS(Allreduce, from, into, count, type, op, comm);
    return levels_leave(on, allreduce(on, from, into, count, &shape, op, &choice));
}
BOTH(Allreduce);

static int reduce_scatter(struct levels *on, const void *from, void *into, const int counts[], const struct shape *shape, MPI_Op op,
                          const struct choice *choice)
{
    if (choice->algorithm == BLOCKS)
        return reduce_scatter_blocks(on, from, into, counts, shape, op);
    return choice->algorithm == LANES ? reduce_scatter_lanes(on, from, into, counts, shape, op, choice->flit)
                                      : reduce_scatter_speakers(on, from, into, counts, shape, op);
}

EXPORT int MPI_Reduce_scatter(const void *from, void *into, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct shape shape;
    struct choice choice;
    struct levels *on = NULL;
    int size;
    int64_t all = 0;
    if (levels_wanted() && comm != handle.comm_null && counts && real.Comm_size(comm, &size) == MPI_SUCCESS) {
        for (int i = 0; i < size && all >= 0; i++)
            all = counts[i] < 0 ? -1 : all + counts[i];
        on = all <= INT_MAX ? enter_reduction(comm, OF_REDUCE_SCATTER, all, type, op, &shape, &choice) : NULL;
    }
    if (!on)
        return PASS(Reduce_scatter, from, into, counts, type, op, comm);
    return levels_leave(on, reduce_scatter(on, from, into, counts, &shape, op, &choice));
}
BOTH(Reduce_scatter);

EXPORT int MPI_Reduce_scatter_block(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct shape shape;
    struct choice choice;
    struct levels *on = NULL;
    int size;
    if (levels_wanted() && comm != handle.comm_null && real.Comm_size(comm, &size) == MPI_SUCCESS &&
        (int64_t)count * size <= INT_MAX)
        on = enter_reduction(comm, OF_REDUCE_SCATTER, (int64_t)count * size, type, op, &shape, &choice);
    if (!on)
        return PASS(Reduce_scatter_block, from, into, count, type, op, comm);
    int *counts = malloc(on->size * sizeof *counts);
    for (int i = 0; counts && i < on->size; i++)
        counts[i] = count;
    int status = counts ? reduce_scatter(on, from, into, counts, &shape, op, &choice) : MPI_ERR_NO_MEM;
    free(counts);
    return levels_leave(on, status);
}
BOTH(Reduce_scatter_block);

static int scan(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, int inclusive)
{
    struct shape shape;
    struct choice choice;
    struct levels *on = enter_reduction(comm, OF_SCAN, count, type, op, &shape, &choice);
    if (!on)
        return inclusive ? PASS(Scan, from, into, count, type, op, comm) : PASS(Exscan, from, into, count, type, op, comm);
    switch (choice.algorithm) {
    case SPEAKERS:
    case FLITS:
        return levels_leave(on, scan_flits(on, from, into, count, &shape, op, inclusive, choice.flit, choice.ahead));
    case DIRECT:
        return levels_leave(on, scan_direct(on, from, into, count, &shape, op, inclusive));
    case BLOCKS:
        return levels_leave(on, scan_blocks(on, from, into, count, &shape, op, inclusive));
    default:
        return levels_leave(on, scan_gathered(on, from, into, count, &shape, op, inclusive));
    }
}

EXPORT int MPI_Scan(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return scan(from, into, count, type, op, comm, 1);
}
BOTH(Scan);

EXPORT int MPI_Exscan(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return scan(from, into, count, type, op, comm, 0);
}
BOTH(Exscan);
