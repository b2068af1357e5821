/* Collective operations among neighbours of a topology over sites: a message for each edge. */
#define _GNU_SOURCE
#include "world/below/local.h"
#include "world/below/transfer.h"
#include "world/calls/check.h"

#include <stdlib.h>

/* Above those of other collective operations, which may still be under way on a faster rank. */
enum { FIRST_TAG = 16 };

/* A block of memory. */
struct slot {
    void *at;
    int count;
    MPI_Datatype type;
};

/* The neighbours of this rank, as the operations number them. */
struct neighbors {
    int in, out;
    int *ranks; /* in, then out */
    /* Where two edges may join the same two ranks in a grid, the direction tells them apart. */
    int has_directions;
};

static int neighbors_of(const struct comm *on, struct neighbors *all)
{
    const struct topology *topology = on->topology;
    const int *edges = NULL;
    *all = (struct neighbors){0};
    if (!topology)
        return MPI_ERR_TOPOLOGY;
    if (topology->kind == MPI_DIST_GRAPH) {
        all->in = topology->in;
        all->out = topology->out;
    } else if (topology->kind == MPI_GRAPH) {
        edges = topology_neighbors(topology, on->rank, &all->in);
        all->out = all->in;
    } else {
        all->has_directions = 1;
        all->in = all->out = 2 * topology->dimensions;
    }
    all->ranks = malloc(((size_t)all->in + (size_t)all->out) * sizeof *all->ranks + 1);
    if (!all->ranks)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < all->in + all->out; i++) {
        int k = i < all->in ? i : i - all->in;
        if (all->has_directions)
            all->ranks[i] = topology_shifted(topology, on->rank, k / 2, k % 2 ? 1 : -1);
        else if (edges)
            all->ranks[i] = edges[k];
        else
            all->ranks[i] = i < all->in ? topology->sources[k] : topology->targets[k];
    }
    return MPI_SUCCESS;
}

/* What a neighbour below sends goes up: it arrives where what comes from below is expected. */
static int tag_in(const struct neighbors *all, int i)
{
    return FIRST_TAG + (all->has_directions ? i ^ 1 : 0);
}
static int tag_out(const struct neighbors *all, int i) { return FIRST_TAG + (all->has_directions ? i : 0); }

static int exchange(struct comm *on, const struct neighbors *all, const struct slot *out,
                    const struct slot *in)
{
    int count = all->in + all->out, status = MPI_SUCCESS, begun = 0;
    struct transfer *transfers = calloc((size_t)count + 1, sizeof *transfers);
    if (!transfers)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < all->in && status == MPI_SUCCESS; i++)
        status = transfer_receive(&transfers[begun++], on->hidden, in[i].at, in[i].count, in[i].type,
                                  all->ranks[i], tag_in(all, i));
    for (int i = 0; i < all->out && status == MPI_SUCCESS; i++)
        status = transfer_send(&transfers[begun++], on->hidden, out[i].at, out[i].count, out[i].type,
                               all->ranks[all->in + i], tag_out(all, i));
    int ended = transfer_wait_all(transfers, begun);
    free(transfers);
    return status != MPI_SUCCESS ? status : ended;
}

/* How an operation describes its blocks. NULL counts: `count` each; NULL starts: one behind the other, or
 * `is_one`: all the same. Starts are in elements, or in bytes in `places`. */
struct layout {
    const void *buffer;
    const int *counts, *starts;
    const MPI_Aint *places;
    const MPI_Datatype *types;
    MPI_Datatype type;
    int count, is_one;
};

static int lay_out(const struct layout *layout, int count, struct slot *slots)
{
    MPI_Aint low, extent = 0;
    int status = layout->types ? MPI_SUCCESS : real.Type_get_extent(layout->type, &low, &extent);
    for (int i = 0; i < count; i++) {
        MPI_Aint place = layout->is_one ? 0 : (MPI_Aint)i * layout->count * extent;
        if (layout->places)
            place = layout->places[i];
        else if (layout->starts)
            place = layout->starts[i] * extent;
        slots[i] =
            (struct slot){(char *)layout->buffer + place, layout->counts ? layout->counts[i] : layout->count,
                          layout->types ? layout->types[i] : layout->type};
    }
    return status;
}

static int operate(struct comm *on, const struct layout *out, const struct layout *in)
{
    struct neighbors all;
    int status = neighbors_of(on, &all);
    struct slot *slots = calloc((size_t)all.in + (size_t)all.out + 1, sizeof *slots);
    if (status == MPI_SUCCESS && !slots)
        status = MPI_ERR_NO_MEM;
    TRY(status, lay_out(in, all.in, slots));
    TRY(status, lay_out(out, all.out, slots + all.in));
    TRY(status, exchange(on, &all, slots + all.in, slots));
    free(slots);
    free(all.ranks);
    return comm_error(on, status);
}

/* Natively, within a site: all meet first, so that nobody waits who could move others along. */
#define WITHIN_A_SITE(text, PARAMETERS, ...)  \
    do {                                      \
        if (ours.is_on)                       \
            local_meet(comm);                 \
        OTHER(text, PARAMETERS, __VA_ARGS__); \
    } while (0)

EXPORT int MPI_Neighbor_allgather(const void *out, int out_count, MPI_Datatype out_type, void *in,
                                  int in_count, MPI_Datatype in_type, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        WITHIN_A_SITE("Neighbor_allgather",
                      (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm), out, out_count,
                      out_type, in, in_count, in_type, comm);
    return operate(on, &(struct layout){.buffer = out, .count = out_count, .type = out_type, .is_one = 1},
                   &(struct layout){.buffer = in, .count = in_count, .type = in_type});
}
BOTH(Neighbor_allgather);

EXPORT int MPI_Neighbor_allgatherv(const void *out, int out_count, MPI_Datatype out_type, void *in,
                                   const int in_counts[], const int in_starts[], MPI_Datatype in_type,
                                   MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        WITHIN_A_SITE(
            "Neighbor_allgatherv",
            (const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, MPI_Comm), out,
            out_count, out_type, in, in_counts, in_starts, in_type, comm);
    return operate(on, &(struct layout){.buffer = out, .count = out_count, .type = out_type, .is_one = 1},
                   &(struct layout){.buffer = in, .counts = in_counts, .starts = in_starts, .type = in_type});
}
BOTH(Neighbor_allgatherv);

EXPORT int MPI_Neighbor_alltoall(const void *out, int out_count, MPI_Datatype out_type, void *in,
                                 int in_count, MPI_Datatype in_type, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        WITHIN_A_SITE("Neighbor_alltoall",
                      (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm), out, out_count,
                      out_type, in, in_count, in_type, comm);
    return operate(on, &(struct layout){.buffer = out, .count = out_count, .type = out_type},
                   &(struct layout){.buffer = in, .count = in_count, .type = in_type});
}
BOTH(Neighbor_alltoall);

EXPORT int MPI_Neighbor_alltoallv(const void *out, const int out_counts[], const int out_starts[],
                                  MPI_Datatype out_type, void *in, const int in_counts[],
                                  const int in_starts[], MPI_Datatype in_type, MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        WITHIN_A_SITE("Neighbor_alltoallv",
                      (const void *, const int *, const int *, MPI_Datatype, void *, const int *, const int *,
                       MPI_Datatype, MPI_Comm),
                      out, out_counts, out_starts, out_type, in, in_counts, in_starts, in_type, comm);
    return operate(
        on, &(struct layout){.buffer = out, .counts = out_counts, .starts = out_starts, .type = out_type},
        &(struct layout){.buffer = in, .counts = in_counts, .starts = in_starts, .type = in_type});
}
BOTH(Neighbor_alltoallv);

EXPORT int MPI_Neighbor_alltoallw(const void *out, const int out_counts[], const MPI_Aint out_places[],
                                  const MPI_Datatype out_types[], void *in, const int in_counts[],
                                  const MPI_Aint in_places[], const MPI_Datatype in_types[], MPI_Comm comm)
{
    struct comm *on = comm_find(comm);
    if (!on)
        WITHIN_A_SITE("Neighbor_alltoallw",
                      (const void *, const int *, const MPI_Aint *, const MPI_Datatype *, void *, const int *,
                       const MPI_Aint *, const MPI_Datatype *, MPI_Comm),
                      out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, comm);
    return operate(
        on, &(struct layout){.buffer = out, .counts = out_counts, .places = out_places, .types = out_types},
        &(struct layout){.buffer = in, .counts = in_counts, .places = in_places, .types = in_types});
}
BOTH(Neighbor_alltoallw);
