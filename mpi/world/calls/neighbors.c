/* Collective operations among neighbours of a topology over sites: one message for each edge. */
#define _GNU_SOURCE
#include "world/calls/collective.h"
#include "world/native/transfer.h"

#include <stdlib.h>

/* Above those of other collective operations, which may be in progress on another rank. */
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
    /* True for a grid, in which two edges may join the same two ranks: the direction tells them apart. */
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

/* A neighbour below sends its message up, with the tag of that direction; so the receive from below uses that
 * tag. */
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

/* Finds where the blocks of a part are. With `is_one`, all neighbours get the same block. */
static int lay_out(const struct part *part, int is_one, int count, struct slot *slots)
{
    MPI_Aint low, extent = 0;
    int status = part->types ? MPI_SUCCESS : real.Type_get_extent(part->type, &low, &extent);
    for (int i = 0; i < count; i++) {
        MPI_Aint place = is_one ? 0 : (MPI_Aint)i * part->count * extent;
        if (part->displs)
            place = part->displs[i];
        else if (part->starts)
            place = part->starts[i] * extent;
        slots[i] = (struct slot){(char *)part->buffer + place, part->counts ? part->counts[i] : part->count,
                                 part->types ? part->types[i] : part->type};
    }
    return status;
}

static int operate(const struct collective *all, int is_one)
{
    struct neighbors neighbors;
    int status = neighbors_of(all->on, &neighbors);
    struct slot *slots = calloc((size_t)neighbors.in + (size_t)neighbors.out + 1, sizeof *slots);
    if (status == MPI_SUCCESS && !slots)
        status = MPI_ERR_NO_MEM;
    TRY(status, lay_out(&all->in, 0, neighbors.in, slots));
    TRY(status, lay_out(&all->out, is_one, neighbors.out, slots + neighbors.in));
    TRY(status, exchange(all->on, &neighbors, slots + neighbors.in, slots));
    free(slots);
    free(neighbors.ranks);
    return status;
}

static int run_same(const struct collective *all) { return operate(all, 1); }
static int run_each(const struct collective *all) { return operate(all, 0); }

/* Fills in a call; without lists there are no entries. */
static int prepare(struct collective *all, int (*run)(const struct collective *), struct part out,
                   struct part in)
{
    struct neighbors neighbors;
    int status = neighbors_of(all->on, &neighbors);
    free(neighbors.ranks);
    all->run = run;
    all->out = out;
    all->in = in;
    if (out.counts)
        all->out.entries = neighbors.out;
    if (in.counts)
        all->in.entries = neighbors.in;
    return comm_error(all->on, status);
}

/* Natively, within a site: all ranks meet first, so that no rank blocks in the MPI while others need its
 * progress. */
#define NEIGHBORS(Name, name)                                  \
    FORMS(                                                     \
        Name, name,                                            \
        do {                                                   \
            if (ours.is_on)                                    \
                native_meet(comm);                             \
            OTHER(#Name, (PARAMETERS(Name)), ARGUMENTS(Name)); \
        } while (0),                                           \
        OTHER("I" #name, (PARAMETERS(Name), MPI_Request *), ARGUMENTS(Name), request))

static int prepare_Neighbor_allgather(struct collective *all, PARAMETERS(Neighbor_allgather))
{
    (void)comm;
    return prepare(all, run_same, (struct part){.buffer = from, .count = count, .type = type},
                   (struct part){.buffer = into, .count = into_count, .type = into_type});
}
NEIGHBORS(Neighbor_allgather, neighbor_allgather);

static int prepare_Neighbor_allgatherv(struct collective *all, PARAMETERS(Neighbor_allgatherv))
{
    (void)comm;
    return prepare(
        all, run_same, (struct part){.buffer = from, .count = count, .type = type},
        (struct part){.buffer = into, .counts = into_counts, .starts = into_displs, .type = into_type});
}
NEIGHBORS(Neighbor_allgatherv, neighbor_allgatherv);

static int prepare_Neighbor_alltoall(struct collective *all, PARAMETERS(Neighbor_alltoall))
{
    (void)comm;
    return prepare(all, run_each, (struct part){.buffer = from, .count = count, .type = type},
                   (struct part){.buffer = into, .count = into_count, .type = into_type});
}
NEIGHBORS(Neighbor_alltoall, neighbor_alltoall);

static int prepare_Neighbor_alltoallv(struct collective *all, PARAMETERS(Neighbor_alltoallv))
{
    (void)comm;
    return prepare(
        all, run_each, (struct part){.buffer = from, .counts = counts, .starts = displs, .type = type},
        (struct part){.buffer = into, .counts = into_counts, .starts = into_displs, .type = into_type});
}
NEIGHBORS(Neighbor_alltoallv, neighbor_alltoallv);

static int prepare_Neighbor_alltoallw(struct collective *all, PARAMETERS(Neighbor_alltoallw))
{
    (void)comm;
    return prepare(
        all, run_each, (struct part){.buffer = from, .counts = counts, .displs = displs, .types = types},
        (struct part){.buffer = into, .counts = into_counts, .displs = into_displs, .types = into_types});
}
NEIGHBORS(Neighbor_alltoallw, neighbor_alltoallw);
